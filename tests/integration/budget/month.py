"""A node with a budget over a month in virtual time: the real loops, the fake clouds, the load.

Leases, the watch of the Node and the backends' capacity are left out: they cost half a million
calls a month and have nothing to do with money.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from tests.integration.budget.load import Guest
from tests.integration.loops.bench import CLUSTER, NODE, pod, settings
from tests.integration.loops.memory_api import MemoryApi, MemoryClient
from tests.support.loop_clock import LoopClock
from vk_provider.app.assembly import Whereabouts, assemble
from vk_provider.loops.node_heartbeat import NodeHeartbeat
from vk_provider.loops.shell import Shell
from vk_provider.loops.spend_saving import save_spend
from vk_provider.metrics import Metrics
from vk_provider.node.object import NodeSpec
from vk_provider.testing.builders import uid_of
from vk_provider.testing.fake import FakeBackend, FakeProvider

START = datetime(2026, 1, 1, tzinfo=UTC)
FAKE = "fake.vk-provider.dev/"


class Month:
    """The node, its API server, its clouds and their clock, which begins with the month."""

    def __init__(self, backends: Mapping[str, Mapping[str, Any]], **spec: Any) -> None:
        self.settings = settings(backends, **spec)
        self.api = MemoryApi()
        self.clouds: dict[str, FakeBackend] = {}
        self.metrics = Metrics()
        self.come: list[Guest] = []
        self._running: list[asyncio.Task[None]] = []
        self._stack = AsyncExitStack()
        self._began = 0.0

    async def __aenter__(self) -> Self:
        self._began = asyncio.get_running_loop().time()
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def seconds(self) -> float:
        """Since the month began."""
        return asyncio.get_running_loop().time() - self._began

    @property
    def now(self) -> datetime:
        """The calendar."""
        return START + timedelta(seconds=self.seconds)

    async def start(self, step: timedelta = timedelta(0)) -> None:
        """A process begins; ``step``: its calendar is wrong by so much."""
        client = MemoryClient(self.api)
        shell = Shell(LoopClock(self.now + step), self.metrics, jitter=lambda: 0.5, node=NODE)
        where = Whereabouts(CLUSTER, "10.0.0.1")
        self.node = await assemble(self.settings, client, shell, where, self._stack)
        for name, backend in self.node.backends.items():
            assert isinstance(backend.provider, FakeProvider)
            cloud = self.clouds.setdefault(name, backend.provider.backend)
            backend.provider = FakeProvider(cloud, CLUSTER)  # a cloud outlives a process
            cloud.epoch = START - timedelta(seconds=self._began)
        spec = NodeSpec(NODE, self.settings.capacity, "1", cluster_id=CLUSTER)
        heartbeat = NodeHeartbeat(
            client, spec, self.node.views.node_view, self.node.threshold, shell,
            self.settings.tick_seconds,
        )  # fmt: skip
        await heartbeat.register()
        works = [("heartbeat", heartbeat.run()), *self.node.loops()]
        for name, work in works:
            if name == "capacity":
                work.close()
            else:
                self._running.append(asyncio.ensure_future(work))

    async def stop(self, *, cleanly: bool = True) -> None:
        """The process ends; ``cleanly`` False: it is killed."""
        if cleanly:
            memory = self.node.threshold.spend_memory
            await save_spend(MemoryClient(self.api), NODE, memory)
        for task in self._running:
            task.cancel()
        ends = await asyncio.gather(*self._running, return_exceptions=True)
        self._running = []
        await self.node.shell.drain(0)
        self.node.close()
        for end in ends:
            if isinstance(end, Exception):
                raise end

    def has_room(self) -> bool:
        """Whether a scheduler would send one more pod here."""
        node = self.api.get("nodes", NODE, "") or {}
        taints = node.get("spec", {}).get("taints") or []
        return not taints and self.bound < int(node["status"]["allocatable"]["pods"])

    @property
    def bound(self) -> int:
        """Pods on the node that are not over."""
        phases = self.api.phases()
        return sum(phases.values()) - phases["Failed"] - phases["Succeeded"]

    def bind(self, guest: Guest) -> None:
        """One comes."""
        notes = {} if guest.leaves else {f"{FAKE}run-seconds": f"{guest.stays:.3f}"}
        if guest.dies:
            notes[f"{FAKE}vanish-after-seconds"] = f"{guest.stays / 2:.3f}"
        made = pod(guest.name, restartPolicy="Always" if guest.leaves else "Never")
        made["metadata"] |= {"annotations": notes, "namespace": guest.namespace}
        limits = {"nvidia.com/gpu": str(guest.gpus)}
        made["spec"]["containers"][0]["resources"] = {"requests": limits, "limits": limits}
        self.api.store.put("pods", made)
        self.come.append(guest)

    def delete(self, guest: Guest) -> None:
        """Its owner has no use for it any more."""
        known = self.api.get("pods", guest.name, guest.namespace)
        if known is None:
            return
        if known.get("status", {}).get("phase") in ("Failed", "Succeeded"):
            self.api.store.remove("pods", guest.namespace, guest.name)
            return
        stamp = self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        marks = {"deletionTimestamp": stamp, "deletionGracePeriodSeconds": 30}
        self.api.store.put("pods", {**known, "metadata": {**known["metadata"], **marks}})

    def billed(self, begin: float = 0.0, end: float = 1e12, namespace: str = "") -> float:
        """What the clouds' own ledgers say was billed between two moments of the month."""
        owners = {uid_of(each.name): each.namespace for each in self.come}
        return sum(
            bill.usd_within(self._began + begin, self._began + end)
            for cloud in self.clouds.values()
            for bill in cloud.ledger.bills(cloud.clock())
            if namespace in ("", owners.get(bill.pod_uid))
        )

    def rate(self) -> float:
        """What the clouds bill per hour at this moment."""
        return sum(
            bill.usd_per_hour or 0.0
            for cloud in self.clouds.values()
            for bill in cloud.ledger.open_bills(cloud.clock())
        )

    def value(self, name: str, **labels: str) -> float:
        """A metric, summed over what has these labels."""
        return sum(
            sample.value
            for family in self.metrics.registry.collect()
            for sample in family.samples
            if sample.name == f"vk_provider_{name}" and labels.items() <= sample.labels.items()
        )
