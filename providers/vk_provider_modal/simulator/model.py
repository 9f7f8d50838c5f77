"""The simulated service's state machine: Apps, Secrets, images and sandboxes, without any I/O.

Nothing in here moves by itself: a sandbox's state is a function of its history and ``now``, so a
virtual clock needs no timers. A sandbox queues for a machine (and bills nothing), gets one, starts
its container, and ends once and for all: by itself, at its time limit, or because it is told to.
Fed by ``control`` and ``admin``; feeds the answers, the logs and the ``ledger``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vk_provider.testing.simulator import account
from vk_provider.testing.simulator.ledger import Charge, Owner
from vk_provider_modal.stamp import CLUSTER, NAMESPACE, NODE, POD, UID

STATUSES = (
    "UNSPECIFIED", "SUCCESS", "FAILURE", "TERMINATED", "TIMEOUT", "INIT_FAILURE",
    "INTERNAL_FAILURE", "IDLE_TIMEOUT", "MEMORY_MANAGER_EVICTION", "MEMORY_THRASHING_EVICTION",
    "KERNEL_OOM_KILL",
)  # fmt: skip
"""The service's words for an end; the index is the number on the wire."""
GPU_USD_PER_SECOND: Mapping[str, float] = {
    "T4": 0.000164, "L4": 0.000222, "A10": 0.000306, "L40S": 0.000542, "A100": 0.000583,
    "A100-40GB": 0.000583, "A100-80GB": 0.000694, "RTX-PRO-6000": 0.000842, "H100": 0.001097,
    "H200": 0.001261, "B200": 0.001736, "B300": 0.001972,
}  # fmt: skip
TICK, SLACK = 1e-6, 0.05
"""Creates of one moment are told apart by a tick each, and are there all the same."""
CORE_USD_PER_SECOND = 0.0000131
GIB_USD_PER_SECOND = 0.00000222


class RefusalError(account.RefusalError):
    """The service refuses: a gRPC status by name, and prose."""

    def __init__(self, status: str, detail: str, details: Sequence[Any] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.details = list(details)


@dataclass(frozen=True, slots=True)
class Behaviour(account.ContainerBehaviour):
    """How a sandbox behaves. Times are seconds of simulated time."""

    queue_seconds: float = 0.0
    """How long it waits for a machine where there is one."""
    start_seconds: float = 1.0
    """From the machine to the container's start."""
    exit_code: int = 0
    start_failure: str | None = None
    """It never starts, and this is what the service says about it."""


@dataclass(frozen=True, slots=True)
class End:
    """How and when a sandbox ended. ``status`` is an index of :data:`STATUSES`, or a stranger's."""

    status: int
    at: float
    exit_code: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a sandbox was asked to be. ``definition`` is the request's own message."""

    app_id: str
    definition: Any
    tags: Mapping[str, str]
    env: Mapping[str, str] = field(default_factory=dict)
    image: Mapping[str, Any] = field(default_factory=dict)
    is_v2: bool = False

    @property
    def name(self) -> str:
        """Its name, unique among the living of an App."""
        return str(self.definition.name)

    @property
    def gpu(self) -> tuple[str, int]:
        """GPU type and count; empty and 0 for a CPU sandbox."""
        found = self.definition.resources.gpu_config
        return str(found.gpu_type), int(found.count)


@dataclass(slots=True)
class SimulatedSandbox:
    """One sandbox with everything that ever happened to it."""

    id: str
    task_id: str
    wish: Wish
    created_at: float
    behaviour: Behaviour
    placed_at: float | None = None
    end: End | None = None
    shown_status: int | None = None
    """A status that lists show although it has not ended: for tests of strange answers."""
    gone: bool = False
    said: list[tuple[float, str, str]] = field(default_factory=list)
    """Output put in by hand: when, stdout or stderr, what."""

    @property
    def owner(self) -> Owner:
        """Who pays for it, by the tags that the provider sets."""
        return Owner.marked(self.wish.tags, (UID, CLUSTER, NODE, NAMESPACE, POD))

    @property
    def started_at(self) -> float | None:
        """When its container starts or has started."""
        return None if self.placed_at is None else self.placed_at + self.behaviour.start_seconds

    def is_started(self, now: float) -> bool:
        """Whether its container has started by now."""
        return self.started_at is not None and now + SLACK >= self.started_at


@dataclass(slots=True)
class Model(account.Account[Behaviour, Charge]):
    """One workspace and the bill it runs up.

    A sandbox bills from the moment it gets a machine until it ends, by GPU, cores and memory.
    """

    default: Behaviour = field(default_factory=Behaviour)
    stock: dict[str, int] = field(default_factory=dict)
    """Free GPUs by type where they are limited."""
    sandboxes: dict[str, SimulatedSandbox] = field(default_factory=dict)
    living: dict[str, SimulatedSandbox] = field(default_factory=dict)
    _newest: float = 0.0

    def create(self, ids: tuple[str, str], wish: Wish, now: float) -> SimulatedSandbox:
        """Make a sandbox, or raise :class:`RefusalError`."""
        self.settle(now)
        if wish.name and any(
            each.wish.name == wish.name and each.wish.app_id == wish.app_id
            for each in self.living.values()
        ):
            raise RefusalError("ALREADY_EXISTS", f"Sandbox with name '{wish.name}' already exists")
        # Times are distinct, as pages are cut by them, even while a virtual clock stands still.
        self._newest = max(now, self._newest + TICK)
        sandbox = SimulatedSandbox(*ids, wish, self._newest, self._behaviour(wish))
        self.sandboxes[sandbox.id] = self.living[sandbox.id] = sandbox
        self.settle(now)
        return sandbox

    def get(self, sandbox_id: str, now: float) -> SimulatedSandbox:
        """A sandbox that was ever made."""
        self.settle(now)
        sandbox = self.sandboxes.get(sandbox_id)
        if sandbox is None or sandbox.gone:
            raise RefusalError("NOT_FOUND", f"Sandbox {sandbox_id} not found")
        return sandbox

    def listed(self, now: float, *, finished: bool) -> list[SimulatedSandbox]:
        """What a list shows now, newest first: late in both directions by the lag."""
        self.settle(now)
        lag = self.list_lag_seconds
        shown = [
            each
            for each in self.sandboxes.values()
            if not each.gone
            and now + SLACK >= each.created_at + lag
            and (finished or each.end is None or now < each.end.at + lag)
        ]
        return sorted(shown, key=lambda each: each.created_at, reverse=True)

    def finish(self, sandbox: SimulatedSandbox, end: End) -> None:
        """It ends; what has ended stays as it is."""
        if sandbox.end is None:
            sandbox.end = end
            del self.living[sandbox.id]
            self.ledger.close(sandbox.id, end.at)
            kind, count = sandbox.wish.gpu
            if sandbox.placed_at is not None and kind in self.stock:
                self.stock[kind] += count

    def vanish(self, sandbox: SimulatedSandbox, now: float) -> None:
        """It is gone from one moment to the next, as if it had never been."""
        self.finish(sandbox, End(STATUSES.index("INTERNAL_FAILURE"), now))
        sandbox.gone = True

    def settle(self, now: float) -> None:
        """Carry out what time alone has brought about: places, starts that fail, ends."""
        for sandbox in list(self.living.values()):
            self._place(sandbox, now)
            end = _end_by_time(sandbox)
            if end is not None and now >= end.at:
                self.finish(sandbox, end)

    def _place(self, sandbox: SimulatedSandbox, now: float) -> None:
        due = sandbox.created_at + sandbox.behaviour.queue_seconds
        kind, count = sandbox.wish.gpu
        if sandbox.placed_at is not None or now + SLACK < due:
            return
        if kind in self.stock:
            if self.stock[kind] < count:
                return
            self.stock[kind] -= count
            due = max(due, now)
        sandbox.placed_at = due
        if sandbox.behaviour.start_failure is None:
            rate = usd_per_hour(sandbox.wish)
            self.ledger.open(Charge(sandbox.id, rate, due, sandbox.owner))

    def _behaviour(self, wish: Wish) -> Behaviour:
        found = self.behaviour(f"{wish.image.get('reference', '')} {wish.name}", wish.env)
        if (code := wish.env.get("SIMULATE_EXIT_CODE", "")).isdecimal():
            found = replace(found, exit_code=int(code))
        return found


def _end_by_time(sandbox: SimulatedSandbox) -> End | None:
    started, behaviour = sandbox.started_at, sandbox.behaviour
    if sandbox.placed_at is None or started is None:
        return None
    if behaviour.start_failure is not None:
        status = STATUSES.index("INIT_FAILURE")
        return End(status, sandbox.placed_at, message=behaviour.start_failure)
    limit = started + sandbox.wish.definition.timeout_secs
    if behaviour.run_seconds is not None and started + behaviour.run_seconds < limit:
        status = STATUSES.index("FAILURE" if behaviour.exit_code else "SUCCESS")
        return End(status, started + behaviour.run_seconds, behaviour.exit_code)
    return End(STATUSES.index("TIMEOUT"), limit)


def usd_per_hour(wish: Wish) -> float:
    """The rate of a sandbox: GPUs, and the larger of default and request for the rest."""
    kind, count = wish.gpu
    resources = wish.definition.resources
    cores = max(0.125, resources.milli_cpu / 1000)
    gib = max(128, resources.memory_mb) / 1024
    gpus = count * GPU_USD_PER_SECOND.get(kind.rstrip("!+"), 0.001)
    return float(3600 * (gpus + cores * CORE_USD_PER_SECOND + gib * GIB_USD_PER_SECOND))
