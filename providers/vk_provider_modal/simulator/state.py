"""Everything one running simulator holds: clock, workspace, misfortune, a record of all calls.

Fed by the command line (:class:`Options`); shared by ``service``, ``control``, ``router`` and
``admin``.
"""

from __future__ import annotations

import random
import string
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modal_proto import api_pb2

from vk_provider.testing.simulator.clock import Clock
from vk_provider.testing.simulator.state import CallRecord, SimulatorOptions, SimulatorState
from vk_provider_modal.simulator.faults import Fault, make_faults
from vk_provider_modal.simulator.model import Behaviour, Model, SimulatedSandbox, Wish

_LETTERS = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True)
class Options(SimulatorOptions):
    """How a simulator behaves. ``runs_exec``: plain TCP tunnels lead to ports of this machine."""

    admin_port: int = 0
    tokens: tuple[str, str] | None = None
    """Only this pair is accepted; None accepts any."""
    behind_seconds: float = 0.0
    queue_seconds: float = 0.0
    start_seconds: float = 1.0
    creates_per_second: float = 0.0
    """0: no limit; otherwise a bucket of ``create_burst``."""
    create_burst: int = 150
    honours_idempotency_keys: bool = True
    foreign_sandboxes: int = 0


@dataclass(slots=True)
class State(SimulatorState[Model, Fault, CallRecord]):
    """The parts of one simulator, wired."""

    options: Options = field(default_factory=Options)
    wishes: deque[Wish] = field(default_factory=lambda: deque(maxlen=1000))
    """What the create calls asked for, whatever became of them; never served."""
    apps: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, Mapping[str, str]] = field(default_factory=dict)
    images: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    volumes: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    """Answers by idempotency key."""
    url: str = ""
    tokens_left: float = 0.0
    filled_at: float = 0.0

    def __post_init__(self) -> None:
        options = self.options
        self.clock = Clock(options.speed, options.behind_seconds)
        default = Behaviour(
            queue_seconds=options.queue_seconds,
            start_seconds=options.start_seconds,
            log_every_seconds=options.log_every_seconds,
        )
        self.model = Model(default=default, list_lag_seconds=options.list_lag_seconds)
        self.faults = make_faults(options.seed)
        self.rng = random.Random(options.seed)
        self.tokens_left, self.filled_at = float(options.create_burst), self.clock.now()
        for number in range(options.foreign_sandboxes):
            self.add_foreign(f"somebody-elses-{number}")

    def new_id(self, prefix: str, length: int = 22) -> str:
        """A fresh id of the service's kind. 22 letters and digits make a sandbox an elder one."""
        return f"{prefix}-{''.join(self.rng.choices(_LETTERS, k=length))}"

    def app(self, name: str) -> str:
        """The id of an App, made if it is missing."""
        return self.apps.setdefault(name, self.new_id("ap"))

    def add_foreign(self, name: str, app: str = "somebody-elses", **tags: str) -> SimulatedSandbox:
        """A sandbox of another user of the workspace, which nobody of ours may touch."""
        definition = api_pb2.Sandbox(
            name=name,
            timeout_secs=86_400,
            resources=api_pb2.Resources(gpu_config=api_pb2.GPUConfig(gpu_type="L4", count=1)),
        )
        wish = Wish(self.app(app), definition, tags)
        return self.model.create((self.new_id("sb"), self.new_id("ta")), wish, self.clock.now())

    def record(self, operation: str) -> CallRecord:
        """Note that a call has arrived."""
        return self.note(CallRecord(len(self.requests), operation, self.clock.now()))

    def spend_create(self) -> float:
        """Take a create from the bucket; how many seconds are lacking until there is one."""
        rate = self.options.creates_per_second
        if not rate:
            return 0.0
        now = self.clock.now()
        refill = (now - self.filled_at) * rate
        self.tokens_left = min(self.options.create_burst, self.tokens_left + refill)
        self.filled_at = now
        if self.tokens_left < 1:
            return (1 - self.tokens_left) / rate
        self.tokens_left -= 1
        return 0.0
