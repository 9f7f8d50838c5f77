"""One virtual node in virtual time: the real loops over the model API server and the fake cloud.

    async with Bench() as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")

Nothing of it waits in real time: an hour passes in milliseconds.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any, Self

from tests.integration.loops.memory_api import MemoryApi, MemoryClient
from tests.support.loop_clock import LoopClock
from vk_provider.app.assembly import Whereabouts, assemble
from vk_provider.faults import FieldProblem
from vk_provider.loops.node_heartbeat import NodeHeartbeat
from vk_provider.loops.node_lease import NodeLease
from vk_provider.loops.node_watch import NodeWatch
from vk_provider.loops.relist import Relist
from vk_provider.loops.shell import Shell
from vk_provider.metrics import Metrics
from vk_provider.node.object import NodeSpec
from vk_provider.pods.slots import Record
from vk_provider.pods.types import PodUID, Stamp
from vk_provider.settings import NodeSettings
from vk_provider.settings_parse import parse_node
from vk_provider.testing.builders import make_container, uid_of
from vk_provider.testing.fake import FakeBackend, FakeProvider

NODE = "burst"
CLUSTER = "home"
START = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-abc", "uid": "rs-1"}
_services = itertools.count()


def settings(backends: Mapping[str, Mapping[str, Any]] | None = None, **spec: Any) -> NodeSettings:
    """The settings of one node over fake services, from a document as a user writes it."""
    document = {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "VirtualNode",
        "metadata": {"name": NODE},
        "spec": {
            "capacity": {"cpu": "1000", "memory": "4Ti", "nvidia.com/gpu": "64", "pods": "100"},
            "backends": [
                {"name": name, "provider": "fake", "config": {**config}}
                for name, config in (backends or {"fake": {}}).items()
            ],
            "clusterId": CLUSTER,
            "taints": [],
            **spec,
        },
    }
    problems: list[FieldProblem] = []
    node = parse_node(document, problems)
    assert not problems, [str(problem) for problem in problems]
    return node


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """A pod of a ReplicaSet, bound to the node."""
    metadata = {
        "namespace": "default",
        "name": name,
        "uid": uid_of(name),
        "ownerReferences": [{**OWNER, "controller": True}],
    } | spec.pop("metadata", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": NODE,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "containers": [make_container()],
        }
        | spec,
        "status": {"phase": "Pending"},
    }


class Bench:
    """The node, its API server and its clouds. `start` and `stop` may be called again."""

    def __init__(
        self,
        backends: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        api: MemoryApi | None = None,
        **spec: Any,
    ) -> None:
        names = backends or {"fake": {}}
        number = next(_services)
        configs = {n: {"service": f"{n}-{number}", **config} for n, config in names.items()}
        self.settings = settings(configs, **spec)
        self.api = api or MemoryApi()
        self.may_act = True
        self.clouds: dict[str, FakeBackend] = {}
        self._running: list[asyncio.Task[None]] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """A process begins: everything is new but the API server and the clouds."""
        self.client = MemoryClient(self.api)
        self.metrics = Metrics()
        clock = LoopClock(START)
        self.shell = Shell(clock, self.metrics, lambda: self.may_act, lambda: 0.5, NODE)
        where = Whereabouts(CLUSTER, "10.0.0.1")
        self.node = await assemble(self.settings, self.client, self.shell, where, self._stack)
        for name, backend in self.node.backends.items():
            assert isinstance(backend.provider, FakeProvider)
            self.clouds[name] = backend.provider.backend
        taints = [
            {"key": each.key, "value": each.value, "effect": each.effect}
            for each in self.settings.taints
        ]
        spec = NodeSpec(NODE, self.settings.capacity, "1", cluster_id=CLUSTER, taints=taints)
        self.heartbeat = NodeHeartbeat(
            self.client, spec, self.node.views.node_view, self.node.threshold, self.shell,
            self.settings.tick_seconds,
        )  # fmt: skip
        await self.heartbeat.register()
        self.node.seen_node = lambda: self.heartbeat.node
        self.lease = NodeLease(
            self.client, NODE, self.heartbeat.uid, self.heartbeat.report_all, self.shell
        )
        eye = NodeWatch(self.client, NODE, self.heartbeat)
        works = [
            self.heartbeat.run(),
            eye.run(),
            self.lease.run(),
            *(work for _, work in self.node.loops()),
        ]
        self._running = [asyncio.ensure_future(work) for work in works]

    async def stop(self) -> None:
        """The process ends at once: calls under way are cut, nothing is finished."""
        for task in self._running:
            task.cancel()
        ends = await asyncio.gather(*self._running, return_exceptions=True)
        await self.shell.drain(0)
        self.node.close()
        await self._stack.aclose()
        for end in ends:
            if isinstance(end, Exception):
                raise end

    @property
    def cloud(self) -> FakeBackend:
        """The only cloud."""
        (one,) = self.clouds.values()
        return one

    def relist(self, name: str = "fake") -> Relist:
        """The eye on one backend."""
        return self.node.views.backends[name][1]

    def bind(self, name: str, **spec: Any) -> PodUID:
        """A pod of the ReplicaSet is bound to the node."""
        made = self.api.store.put("pods", pod(name, **spec))
        return PodUID(made["metadata"]["uid"])

    def delete(self, name: str, grace: int = 30) -> None:
        """Somebody deletes a pod gracefully."""
        known = self.api.pod(name)
        marks = {
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": grace,
        }
        self.api.store.put("pods", {**known, "metadata": {**known["metadata"], **marks}})

    def force_delete(self, name: str) -> None:
        """Somebody removes a pod's object."""
        self.api.store.remove("pods", "default", name)

    def phase(self, name: str) -> str:
        """The pod's phase; Gone if there is no such pod."""
        found = self.api.get("pods", name)
        return found.get("status", {}).get("phase", "Pending") if found else "Gone"

    def reason(self, name: str) -> str | None:
        """The pod's status.reason."""
        found: str | None = self.api.pod(name).get("status", {}).get("reason")
        return found

    def waiting(self, name: str) -> Mapping[str, str]:
        """Why the pod's only container waits; empty if it does not."""
        states = self.api.pod(name).get("status", {}).get("containerStatuses") or [{}]
        found: Mapping[str, str] = states[0].get("state", {}).get("waiting", {})
        return found

    def record(self, name: str) -> Record:
        """What is remembered of the pod."""
        return self.node.workers.records[PodUID(uid_of(name))]

    def taints(self) -> dict[str, str]:
        """The Node's taints, by key."""
        found = self.api.get("nodes", NODE, "") or {}
        return {t["key"]: t["value"] for t in found.get("spec", {}).get("taints") or []}

    def allocatable(self, resource: str = "pods") -> int:
        """The Node's allocatable amount."""
        found = self.api.get("nodes", NODE, "") or {}
        return int(found["status"]["allocatable"][resource])

    def stamp(self, name: str, node: str = NODE, cluster: str = CLUSTER) -> Stamp:
        """The stamp of a pod's instance."""
        return Stamp(cluster, node, "default", name, uid_of(name))

    def value(self, name: str, **labels: str) -> float:
        """A metric's value; 0 where there is none."""
        found = self.metrics.registry.get_sample_value(f"vk_provider_{name}", labels)
        return found or 0.0

    async def until(self, condition: Callable[[], object], seconds: float = 120.0) -> float:
        """Let time pass until the condition holds; how many seconds that took."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while not condition():
            if loop.time() - begun > seconds:
                found = {n: self.phase(n[2]) for n in self.api.store.objects if n[0] == "pods"}
                raise AssertionError(f"not within {seconds} s; pods: {found}")
            await asyncio.sleep(0.05)
        return loop.time() - begun

    async def settle(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)
