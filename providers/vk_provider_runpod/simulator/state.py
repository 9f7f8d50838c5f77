"""Everything one running simulator holds: clock, account, misfortune, and a record of all calls.

Fed by the command line (:class:`Options`); shared by ``app``, ``sse`` and ``admin``.
"""

from __future__ import annotations

import asyncio
import random
import string
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vk_provider_runpod.simulator.clock import Clock
from vk_provider_runpod.simulator.faults import Faults
from vk_provider_runpod.simulator.model import Behaviour, Model

if TYPE_CHECKING:
    from vk_provider_runpod.simulator.shells import Shells

MOST_REQUESTS = 200_000


@dataclass(frozen=True, slots=True)
class Options:
    """How a simulator behaves. Times in seconds of simulated time, latencies in real ms."""

    host: str = "127.0.0.1"
    port: int = 0
    api_key: str | None = None
    """Only this key is accepted; None accepts any."""
    speed: float = 1.0
    """Simulated seconds per real one; 0 stands still until ``/_sim/clock/advance``."""
    pull_seconds: float = 3.0
    list_lag_seconds: float = 0.0
    create_latency_ms: tuple[float, float] = (0.0, 0.0)
    """Drawn evenly; the pod comes to exist at a random moment within it."""
    page_size: int = 1000
    requests_per_minute: int = 0
    """0: no limit and no rate headers, as for exempt callers."""
    log_every_seconds: float = 5.0
    heartbeat_seconds: float = 15.0
    foreign_pods: int = 0
    runs_exec: bool = False
    """Pods get SSH servers, and what is asked of them runs on this machine."""
    seed: int = 0


@dataclass(slots=True)
class RequestRecord:
    """One call as the server saw it. ``answered_at`` None: the caller was gone, or still waits."""

    number: int
    method: str
    path: str
    operation: str
    arrived_at: float
    answered_at: float | None = None
    status: int | None = None
    pod_uid: str | None = None
    instance: str | None = None
    fault: str | None = None


@dataclass(slots=True)
class State:
    """The parts of one simulator, wired."""

    options: Options = field(default_factory=Options)
    clock: Clock = field(init=False)
    model: Model = field(init=False)
    faults: Faults = field(init=False)
    requests: list[RequestRecord] = field(default_factory=list)
    bodies: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=1000))
    """The bodies of the create calls as they came, the last thousand; never served."""
    rng: random.Random = field(init=False)
    shells: Shells | None = None
    minute: tuple[int, int] = (0, 0)
    """The rate window: its number and the calls in it."""
    drop_logs_after: int = 0
    """Break each log stream after so many lines; 0 never."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set at the end, so that nobody waits for an answer that was to be held back."""
    _ids: int = 0

    def __post_init__(self) -> None:
        options = self.options
        self.clock = Clock(options.speed)
        default = Behaviour(
            pull_seconds=options.pull_seconds, log_every_seconds=options.log_every_seconds
        )
        self.model = Model(default=default, list_lag_seconds=options.list_lag_seconds)
        self.faults = Faults(options.seed)
        self.rng = random.Random(options.seed)
        if options.runs_exec:
            from vk_provider_runpod.simulator.shells import Shells

            self.shells = Shells(self.clock.now)
        for number in range(options.foreign_pods):
            self.add_foreign(f"somebody-elses-{number}")

    async def pause(self, seconds: float) -> None:
        """Wait in real time, or until the simulator closes."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.closing.wait(), seconds)

    def new_id(self) -> str:
        """A fresh id of the service's kind: 14 letters and digits, unique, repeatable by seed."""
        self._ids += 1
        tail = "".join(self.rng.choices(string.ascii_lowercase + string.digits, k=10))
        return f"{self._ids:04x}{tail}"

    def add_foreign(self, name: str, **body: Any) -> str:
        """A pod of another user of the account, which nobody of ours may touch."""
        request: dict[str, Any] = {
            "name": name,
            "image": "somebody/else:1",
            "gpu": {"id": "NVIDIA L4", "count": 1},
            "env": {"OWNER": "somebody else"},
            **body,
        }
        return self.model.create(self.new_id(), request, self.clock.now()).id

    def record(self, method: str, path: str, operation: str) -> RequestRecord:
        """Note that a call has arrived."""
        arrived = RequestRecord(len(self.requests), method, path, operation, self.clock.now())
        if len(self.requests) < MOST_REQUESTS:
            self.requests.append(arrived)
        return arrived

    def spend_call(self) -> tuple[int, int] | None:
        """Count a call against the minute: (left, seconds to the reset); None without a limit."""
        limit = self.options.requests_per_minute
        if not limit:
            return None
        now = self.clock.now()
        number = int(now // 60)
        used = self.minute[1] + 1 if self.minute[0] == number else 1
        self.minute = (number, used)
        return limit - used, max(1, int((number + 1) * 60 - now))
