"""The service behind the process provider: it outlives providers, as a backend does.

Several providers may share one service, which then may hold instances of other nodes and clusters.
Its processes live as long as its event loop or its process, whichever ends first; nothing outlives
them. Tests steer it through ``script``, as the fake.
Fed by :mod:`.process`; speaks to one keeper per instance.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping

from vk_provider.faults import InstanceNotFoundError, RejectedError, UnavailableError
from vk_provider.pods.types import InstanceRef, Json, Observation, Stamp
from vk_provider.testing.fake_faults import Script
from vk_provider.testing.fake_watch import Watchers
from vk_provider.testing.process_config import ProcessConfig
from vk_provider.testing.process_instance import Order, ProcessInstance
from vk_provider.testing.process_link import sweep
from vk_provider.testing.process_log import Signal
from vk_provider.testing.process_observe import observe
from vk_provider.testing.process_ports import free_port

_REQUESTS_KEPT = 1_000
_CLOSE_SECONDS = 30.0


class ProcessService:
    """What the service does when it is called."""

    def __init__(self, config: ProcessConfig | None = None) -> None:
        self.config = config or ProcessConfig()
        self.script = Script(self.config.faults_file)
        self.requests: deque[Json] = deque(maxlen=_REQUESTS_KEPT)
        self.instances: dict[str, ProcessInstance] = {}
        self.watchers = Watchers()
        self._numbers = itertools.count(1)
        self._changed = Signal()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def create(self, order: Order) -> InstanceRef:
        """Make one instance; its containers start by themselves."""
        self.requests.append(order.request)
        scripted = self.script.take("create")
        if scripted and not scripted.created:
            raise scripted.fault
        instance = self._begin(order)
        await self.script.keep_back()
        if scripted:
            raise scripted.fault
        return instance.ref

    def _begin(self, order: Order) -> ProcessInstance:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            sweep(self.config.folder)
        instance = self.add(order)
        try:
            instance.begin(self.config, _ports(order, self.instances.values()))
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
            del self.instances[instance.ref.id]
            raise RejectedError(f"two mounts of a container collide: {error.strerror}") from error
        except OSError as error:
            del self.instances[instance.ref.id]
            raise UnavailableError(f"nothing was started: {error}") from error
        return instance

    async def delete(self, ref: InstanceRef, grace_seconds: float) -> None:
        """Order an instance's end; one that is not there is as good as deleted."""
        self.script.check("delete")
        instance = self.instances.get(ref.id)
        if instance is not None:
            instance.delete(grace_seconds)

    async def list(self, cluster_id: str) -> list[Observation]:
        """All instances of one cluster."""
        self.script.check("list")
        return [
            observe(each, each.stamp, self.config.address)
            for each in self.instances.values()
            if each.stamp and each.stamp.cluster_id == cluster_id
        ]

    async def watch(self, cluster_id: str) -> AsyncGenerator[Observation, None]:
        """Changes of one cluster's instances, beginning with all that are there."""
        with self.watchers.open(cluster_id) as watcher:
            for each in self.instances.values():
                watcher.tell(each.ref.id)
            while True:
                self.script.check("watch")
                for ref in watcher.take(0):
                    instance = self.instances.get(ref)
                    stamp: Stamp | None = instance.stamp if instance else None
                    if instance and stamp and stamp.cluster_id == cluster_id:
                        yield observe(instance, stamp, self.config.address)
                await watcher.wait(0)

    def find(self, ref: InstanceRef) -> ProcessInstance:
        """An instance that is there. Raises ``InstanceNotFoundError``."""
        instance = self.instances.get(ref.id)
        if instance is None:
            raise InstanceNotFoundError(f"the service has no instance {ref.id}")
        return instance

    def add(self, order: Order) -> ProcessInstance:
        """Put an instance there without starting anything, as one that nobody here ordered."""
        ref = InstanceRef(f"process-{next(self._numbers)}")
        instance = self.instances[ref.id] = ProcessInstance(ref, order, self._tell)
        self._tell(instance)
        return instance

    def _tell(self, instance: ProcessInstance) -> None:
        if instance.is_gone:
            self.instances.pop(instance.ref.id, None)
        cluster_id = instance.stamp.cluster_id if instance.stamp else None
        self.watchers.tell(instance.ref.id, cluster_id)
        self._changed.wake()

    async def settled(self, timeout_seconds: float = _CLOSE_SECONDS) -> None:
        """Return once nothing is on its way out any more. Raises ``TimeoutError``."""
        async with asyncio.timeout(timeout_seconds):
            while any(each.is_deleting for each in self.instances.values()):
                await self._changed.wait()

    async def close(self) -> None:
        """Kill everything, and return once nothing is left. Idempotent."""
        for each in list(self.instances.values()):
            each.delete(0)
        await self.settled()
        self._loop = None

    def abandon_if_stale(self) -> None:
        """End what belongs to a loop that was closed: nobody would hear of it any more."""
        if self._loop is not None and self._loop.is_closed():
            for each in self.instances.values():
                each.abandon()
            self.instances.clear()
            self._loop = None


def _ports(order: Order, others: Iterable[ProcessInstance]) -> Mapping[int, int]:
    """A free port for every port of the pod, if they are to be mapped."""
    taken = {free for each in others for free in each.ports.values()}
    found: dict[int, int] = {}
    for each in order.plan.containers if order.plan.map_ports else ():
        for port in each.ports:
            if port not in found:
                found[port] = free_port({*taken, *found.values()})
    return found
