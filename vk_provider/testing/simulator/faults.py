"""Scripted misfortune: which call fails, how, how often, and whether the work was done before.

A simulator names its kinds and answers for them; when one strikes is the same everywhere.
Everything random comes from one seeded generator, so a run can be repeated.
Fed by the back door and by tests; asked by the simulated service once per call.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar


class UnknownKindError(ValueError):
    """The fault asked for does not exist."""


@dataclass(slots=True)
class ScriptedFault:
    """One scripted fault. ``count`` None never wears off; filters are met when they are equal.

    Derive from it for what a service's faults have besides, and for the ``operation`` that most of
    them are meant for. ``facts`` of a call: ``gpu``; ``text``, in which ``match`` is sought;
    ``cursor``, which the first page of a list has not.
    """

    id: str
    kind: str
    operation: str = "*"
    count: int | None = None
    probability: float = 1.0
    gpu: str | None = None
    match: str | None = None
    detail: str | None = None
    hold_ms: float = 60_000
    latency_ms: tuple[float, float] = (0, 0)
    fired: int = 0

    @property
    def is_after(self) -> bool:
        """Whether the work is done before the fault shows."""
        return self.kind.endswith("-after") or self.kind == "hold"

    def applies(self, operation: str, facts: Mapping[str, Any]) -> bool:
        """Whether this call is one of those that the fault is meant for."""
        if self.operation not in ("*", operation) or self.count == 0:
            return False
        if self.kind == "broken-page" and not facts.get("cursor"):
            return False
        if self.gpu is not None and facts.get("gpu") != self.gpu:
            return False
        return self.match is None or self.match in str(facts.get("text", ""))


F = TypeVar("F", bound=ScriptedFault)


@dataclass(slots=True)
class Faults(Generic[F]):
    """All scripted faults, first come first served."""

    make: type[F]
    kinds: Mapping[str, str]
    """Every kind, and what it does."""
    operations: Mapping[str, str]
    """The operation of kinds that make sense for one only."""
    seed: int = 0
    script: list[F] = field(default_factory=list)
    rng: random.Random = field(init=False)
    _made: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def add(self, kind: str, **settings: Any) -> F:
        """Script a fault; ``seed`` restarts the generator. Raises :class:`UnknownKindError`."""
        if kind not in self.kinds:
            known = ", ".join(sorted(self.kinds))
            raise UnknownKindError(f"unknown kind {kind!r}; known: {known}")
        if (seed := settings.pop("seed", None)) is not None:
            self.rng.seed(seed)
        if kind in self.operations:
            settings.setdefault("operation", self.operations[kind])
        self._made += 1
        fault = self.make(f"fault-{self._made}", kind, **settings)
        self.script.append(fault)
        return fault

    def remove(self, fault_id: str | None = None) -> None:
        """Forget one fault, or all."""
        self.script = [fault for fault in self.script if fault_id not in (None, fault.id)]

    def draw(self, operation: str, facts: Mapping[str, Any]) -> F | None:
        """The fault that this call meets, if any."""
        for fault in self.script:
            if fault.applies(operation, facts) and self.rng.random() < fault.probability:
                fault.fired += 1
                if fault.count is not None:
                    fault.count -= 1
                return fault
        return None

    def between(self, low: float, high: float) -> float:
        """A seeded random number, for latencies."""
        return self.rng.uniform(low, high)

    def delay_seconds(self, fault: F) -> float:
        """How long a call that meets the fault waits: ``slow``, ``hold``, ``hang``, or not."""
        if fault.kind == "slow":
            return self.between(*fault.latency_ms) / 1000
        return fault.hold_ms / 1000 if fault.kind in ("hold", "hang", "hang-after") else 0.0
