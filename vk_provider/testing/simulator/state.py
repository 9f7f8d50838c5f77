"""Everything one running simulator holds: clock, account, misfortune, and a record of all calls.

Fed by the command line (:class:`SimulatorOptions`); shared by the simulated service and the back
door.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from vk_provider.testing.simulator.account import Account
from vk_provider.testing.simulator.clock import Clock
from vk_provider.testing.simulator.faults import Faults, ScriptedFault

MOST_REQUESTS = 200_000


@dataclass(frozen=True, slots=True)
class SimulatorOptions:
    """How a simulator behaves. Times in seconds of simulated time, latencies in real ms."""

    host: str = "127.0.0.1"
    port: int = 0
    speed: float = 1.0
    """Simulated seconds per real one; 0 stands still until ``/_sim/clock/advance``."""
    list_lag_seconds: float = 0.0
    create_latency_ms: tuple[float, float] = (0.0, 0.0)
    """Drawn evenly; the instance comes to exist at a random moment within it."""
    page_size: int = 100
    log_every_seconds: float = 5.0
    runs_exec: bool = False
    """What is asked of an instance runs on this machine."""
    seed: int = 0


@dataclass(slots=True)
class CallRecord:
    """One call as the server saw it. ``answered_at`` None: the caller was gone, or still waits."""

    number: int
    operation: str
    arrived_at: float
    answered_at: float | None = None
    status: int | str | None = None
    pod_uid: str | None = None
    instance: str | None = None
    fault: str | None = None


M = TypeVar("M", bound=Account[Any, Any])
F = TypeVar("F", bound=ScriptedFault)
R = TypeVar("R", bound=CallRecord)


@dataclass(slots=True)
class SimulatorState(Generic[M, F, R]):
    """The parts of one simulator; a derived class wires them."""

    clock: Clock = field(init=False)
    model: M = field(init=False)
    faults: Faults[F] = field(init=False)
    rng: random.Random = field(init=False)
    requests: list[R] = field(init=False, default_factory=list)
    closing: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    """Set at the end, so that nobody waits for an answer that was to be held back."""

    async def pause(self, seconds: float) -> None:
        """Wait in real time, or until the simulator closes."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.closing.wait(), seconds)

    def note(self, call: R) -> R:
        """Note that a call has arrived."""
        if len(self.requests) < MOST_REQUESTS:
            self.requests.append(call)
        return call
