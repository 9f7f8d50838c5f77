"""The remote service behind the fake provider, in memory: it outlives providers, as a cloud does.

Several providers (nodes, clusters) may share one service, and it may hold instances of strangers.
Fed by :mod:`.fake`; scripted through :class:`.fake_backend.FakeBackend`.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from vk_provider.faults import InstanceNotFoundError, OutOfCapacityError
from vk_provider.pods.types import (
    IMPLICIT_OFFER,
    InstanceRef,
    Json,
    Observation,
    Offer,
    Stamp,
)
from vk_provider.testing.fake_config import FakeConfig
from vk_provider.testing.fake_faults import Script
from vk_provider.testing.fake_instance import FakeInstance, Plan
from vk_provider.testing.fake_ledger import Ledger
from vk_provider.testing.fake_watch import Watchers

_REQUESTS_KEPT = 1_000


class ManualClock:
    """A clock that a test moves; pass it as a backend's ``clock``."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, slots=True)
class Order:
    """A create call as it arrives at the service."""

    stamp: Stamp
    plan: Plan
    offer: Offer = IMPLICIT_OFFER
    request: Json = field(default_factory=dict, repr=False)


class FakeService:
    """What the service does when it is called."""

    def __init__(
        self, config: FakeConfig | None = None, clock: Callable[[], float] | None = None
    ) -> None:
        self.config = config or FakeConfig()
        self.clock = clock or _loop_time
        self.script = Script(self.config.faults_file)
        self.ledger = Ledger(self.config.ended_is_free)
        self.calls: Counter[str] = Counter()
        self.requests: deque[Json] = deque(maxlen=_REQUESTS_KEPT)
        self.instances: dict[str, FakeInstance] = {}
        self._numbers = itertools.count(1)
        self.watchers = Watchers()
        self.epoch: datetime | None = None
        """The time of day at 0 of the clock; fixed at its first use unless a test sets it."""

    def wall_time(self, at: float) -> datetime:
        """A moment of the service's clock as a time of day. Fixed once, so that the same moment
        always reads the same."""
        if self.epoch is None:
            self.epoch = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=self.clock())
        return self.epoch + timedelta(seconds=at)

    async def create(self, order: Order) -> InstanceRef:
        """Make one instance."""
        self.calls["create"] += 1
        self.requests.append(order.request)
        await asyncio.sleep(self.config.create_seconds / 2)
        scripted = self.script.take("create")
        if scripted and not scripted.created:
            raise scripted.fault
        _refuse_if_full(self, order.offer)
        instance = self.add(order.stamp, order.plan, order.offer)
        await asyncio.sleep(self.config.create_seconds / 2)
        await self.script.keep_back()
        if scripted:
            raise scripted.fault
        return instance.ref

    async def delete(self, ref: InstanceRef) -> None:
        """End and forget an instance; one that is not there is as good as deleted."""
        self.calls["delete"] += 1
        self.script.check("delete")
        instance = self.instances.get(ref.id)
        if instance is not None and instance.deleted_at is None:
            instance.deleted_at = self.clock()
            self.tell(instance)
            self._forget(instance.deleted_at - self.config.list_lag_seconds)

    async def list(self, cluster_id: str) -> list[Observation]:
        """All instances of one cluster that the service shows by now."""
        self.calls["list"] += 1
        self.script.check("list")
        now, lag = self.clock(), self.config.list_lag_seconds
        self._forget(now - lag)
        return [
            each.observe(now, each.stamp)
            for each in self.instances.values()
            if each.stamp and each.stamp.cluster_id == cluster_id
            if each.created_at + lag <= now and each.is_shown(now)
        ]

    def offers(self, gpu_count: int) -> Sequence[Offer]:
        """What it would rent for so many GPUs."""
        self.calls["offers"] += 1
        self.script.check("offers")
        return self.config.offers_for(gpu_count, self.used)

    def find(self, ref: InstanceRef) -> FakeInstance:
        """An instance that is there. Raises ``InstanceNotFoundError``."""
        instance = self.instances.get(ref.id)
        gone = instance is None or instance.deleted_at is not None
        if instance is None or gone or not instance.is_shown(self.clock()):
            raise InstanceNotFoundError(f"the service has no instance {ref.id}")
        return instance

    async def watch(self, cluster_id: str) -> AsyncGenerator[Observation, None]:
        """Changes of one cluster's instances, beginning with all that are there."""
        with self.watchers.open(cluster_id) as watcher:
            for each in self.instances.values():
                watcher.tell(each.ref.id, each.changes_at)
            while True:
                self.script.check("watch")
                now = self.clock()
                for ref in watcher.take(now):
                    instance = self.instances.get(ref)
                    if instance is None or instance.stamp is None or not instance.is_shown(now):
                        continue
                    if instance.stamp.cluster_id == cluster_id:
                        yield instance.observe(now, instance.stamp)
                await watcher.wait(self.clock())

    def add(
        self, stamp: Stamp | None, plan: Plan | None = None, offer: Offer = IMPLICIT_OFFER
    ) -> FakeInstance:
        """Put an instance there, without a call: a stranger's, if it has no stamp."""
        number = next(self._numbers)
        instance = FakeInstance(
            ref=InstanceRef(f"fake-{number}"),
            stamp=stamp,
            plan=plan or Plan(),
            offer=offer,
            created_at=self.clock(),
            wall_time=self.wall_time,
            address=_address(number) if self.config.direct_addresses else None,
        )
        self.instances[instance.ref.id] = instance
        self.ledger.enter(instance)
        self.tell(instance)
        return instance

    def tell(self, instance: FakeInstance) -> None:
        """Let the watches know that an instance has changed."""
        cluster_id = instance.stamp.cluster_id if instance.stamp else None
        self.watchers.tell(instance.ref.id, cluster_id, instance.changes_at)

    def _forget(self, before: float) -> None:
        gone = [
            ref
            for ref, each in self.instances.items()
            if each.deleted_at is not None and each.deleted_at <= before
        ]
        for ref in gone:
            del self.instances[ref]

    def used(self, name: str) -> int:
        """How many machines of an offer are rented."""
        now = self.clock()
        return sum(
            each.offer.id.rpartition("/")[0] == name and each.is_billed(now)
            for each in self.instances.values()
        )


def _refuse_if_full(service: FakeService, offer: Offer) -> None:
    name = offer.id.rpartition("/")[0]
    for each in service.config.offers:
        if each.name == name and each.capacity is not None:
            if service.used(name) >= each.capacity:
                raise OutOfCapacityError(f"all {each.capacity} of {name} are rented")
            return


def _loop_time() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


def _address(number: int) -> str:
    return f"10.{64 + (number >> 16) % 64}.{(number >> 8) % 256}.{number % 256}"
