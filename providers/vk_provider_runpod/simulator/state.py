"""Everything one running simulator holds: clock, account, misfortune, and a record of all calls.

Fed by the command line (:class:`Options`); shared by ``app``, ``sse`` and ``admin``.
"""

from __future__ import annotations

import random
import string
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vk_provider.testing.simulator.clock import Clock
from vk_provider.testing.simulator.state import CallRecord, SimulatorOptions, SimulatorState
from vk_provider_runpod.simulator.faults import Fault, make_faults
from vk_provider_runpod.simulator.model import Behaviour, Model

if TYPE_CHECKING:
    from vk_provider_runpod.simulator.shells import Shells


@dataclass(frozen=True, slots=True)
class Options(SimulatorOptions):
    """How a simulator behaves. ``runs_exec``: pods get SSH servers."""

    api_key: str | None = None
    """Only this key is accepted; None accepts any."""
    pull_seconds: float = 3.0
    page_size: int = 1000
    requests_per_minute: int = 0
    """0: no limit and no rate headers, as for exempt callers."""
    heartbeat_seconds: float = 15.0
    registry_seconds: float = 0.0
    """So long a new registry login is refused by hosts; minutes at the service."""
    foreign_pods: int = 0


@dataclass(slots=True)
class RequestRecord(CallRecord):
    """One call as the server saw it."""

    method: str = ""
    path: str = ""


@dataclass(slots=True)
class State(SimulatorState[Model, Fault, RequestRecord]):
    """The parts of one simulator, wired."""

    options: Options = field(default_factory=Options)
    bodies: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=1000))
    """The bodies of the create calls as they came, the last thousand; never served."""
    shells: Shells | None = None
    minute: tuple[int, int] = (0, 0)
    """The rate window: its number and the calls in it."""
    drop_logs_after: int = 0
    """Break each log stream after so many lines; 0 never."""
    _ids: int = 0

    def __post_init__(self) -> None:
        options = self.options
        self.clock = Clock(options.speed)
        default = Behaviour(
            pull_seconds=options.pull_seconds, log_every_seconds=options.log_every_seconds
        )
        self.model = Model(default=default, list_lag_seconds=options.list_lag_seconds)
        self.faults = make_faults(options.seed)
        self.rng = random.Random(options.seed)
        if options.runs_exec:
            from vk_provider_runpod.simulator.shells import Shells

            self.shells = Shells(self.clock.now)
        for number in range(options.foreign_pods):
            self.add_foreign(f"somebody-elses-{number}")

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
        number, now = len(self.requests), self.clock.now()
        return self.note(RequestRecord(number, operation, now, method=method, path=path))

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
