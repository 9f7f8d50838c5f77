"""What the account of every simulated service has: a bill, and behaviours for its containers.

A simulator derives its state machine from :class:`Account`. Nothing moves by itself: a state is a
function of history and ``now``, so a virtual clock needs no timers. Fed by the simulated service
and the back door; feeds the ``ledger``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from vk_provider.testing.simulator.ledger import Charge, Ledger


class RefusalError(Exception):
    """The simulated service turns a request down, in these words.

    ``http_status`` is the back door's answer where it meets one.
    """

    http_status = 404

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class ContainerBehaviour:
    """How a container behaves. Times are seconds of simulated time."""

    run_seconds: float | None = None
    """It ends by itself after so long; None runs for ever."""
    log_lines: tuple[str, ...] = ("container started", "listening on 0.0.0.0")
    log_every_seconds: float = 5.0
    """After ``log_lines`` one line per so many seconds; 0 is silent."""


B = TypeVar("B", bound=ContainerBehaviour)
C = TypeVar("C", bound=Charge)


@dataclass(frozen=True)
class Rule(Generic[B]):
    """A behaviour for the instances whose image or name contains ``match``."""

    match: str
    behaviour: B


@dataclass(slots=True)
class Account(ABC, Generic[B, C]):
    """One account of a service, and the bill it runs up."""

    default: B
    ledger: Ledger[C] = field(default_factory=Ledger)
    rules: list[Rule[B]] = field(default_factory=list)
    list_lag_seconds: float = 0.0

    @abstractmethod
    def settle(self, now: float) -> None:
        """Carry out what time alone has brought about."""

    def behaviour(self, text: str, env: Mapping[str, str]) -> B:
        """That of the first rule which is met, or the default.

        A manifest may rehearse its own end by the variable SIMULATE_RUN_SECONDS.
        """
        found = next((rule.behaviour for rule in self.rules if rule.match in text), self.default)
        seconds = env.get("SIMULATE_RUN_SECONDS", "")
        return replace(found, run_seconds=float(seconds)) if is_number(seconds) else found


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
