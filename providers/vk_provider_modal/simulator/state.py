"""Everything one running simulator holds: clock, workspace, misfortune, a record of all calls.

Fed by the command line (:class:`Options`); shared by ``service``, ``control``, ``router`` and
``admin``.
"""

from __future__ import annotations

import asyncio
import random
import string
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from modal_proto import api_pb2

from vk_provider_modal.simulator.clock import Clock
from vk_provider_modal.simulator.faults import Faults
from vk_provider_modal.simulator.model import Behaviour, Model, SimulatedSandbox, Wish

MOST_REQUESTS = 200_000
_LETTERS = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True)
class Options:
    """How a simulator behaves. Times in seconds of simulated time, latencies in real ms."""

    host: str = "127.0.0.1"
    port: int = 0
    admin_port: int = 0
    tokens: tuple[str, str] | None = None
    """Only this pair is accepted; None accepts any."""
    speed: float = 1.0
    """Simulated seconds per real one; 0 stands still until the back door advances it."""
    behind_seconds: float = 0.0
    queue_seconds: float = 0.0
    start_seconds: float = 1.0
    list_lag_seconds: float = 0.0
    create_latency_ms: tuple[float, float] = (0.0, 0.0)
    """Drawn evenly; the sandbox comes to exist at a random moment within it."""
    page_size: int = 100
    creates_per_second: float = 0.0
    """0: no limit; otherwise a bucket of ``create_burst``."""
    create_burst: int = 150
    honours_idempotency_keys: bool = True
    log_every_seconds: float = 5.0
    runs_exec: bool = False
    """Commands of exec run as processes of this machine, and plain TCP tunnels lead to its ports;
    without it exec is refused."""
    foreign_sandboxes: int = 0
    seed: int = 0


@dataclass(slots=True)
class RequestRecord:
    """One call as the server saw it. ``answered_at`` None: the caller was gone, or still waits."""

    number: int
    operation: str
    arrived_at: float
    answered_at: float | None = None
    status: str | None = None
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
    rng: random.Random = field(init=False)
    requests: list[RequestRecord] = field(default_factory=list)
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
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        options = self.options
        self.clock = Clock(options.speed, options.behind_seconds)
        default = Behaviour(
            queue_seconds=options.queue_seconds,
            start_seconds=options.start_seconds,
            log_every_seconds=options.log_every_seconds,
        )
        self.model = Model(default=default, list_lag_seconds=options.list_lag_seconds)
        self.faults = Faults(options.seed)
        self.rng = random.Random(options.seed)
        self.tokens_left, self.filled_at = float(options.create_burst), self.clock.now()
        for number in range(options.foreign_sandboxes):
            self.add_foreign(f"somebody-elses-{number}")

    async def pause(self, seconds: float) -> None:
        """Wait in real time, or until the simulator closes."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.closing.wait(), seconds)

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

    def record(self, operation: str) -> RequestRecord:
        """Note that a call has arrived."""
        arrived = RequestRecord(len(self.requests), operation, self.clock.now())
        if len(self.requests) < MOST_REQUESTS:
            self.requests.append(arrived)
        return arrived

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
