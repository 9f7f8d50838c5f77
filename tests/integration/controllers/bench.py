"""The gate's controllers in virtual time, over the API server in memory.

    async with GateBench() as bench:
        bench.pod("a", unschedulable=True)
        await bench.until(lambda: bench.gate() is None)

Nodes and pods are put there by the test: nobody schedules.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Self

from tests.integration.loops.memory_api import MemoryApi, MemoryClient, Object
from tests.support.loop_clock import LoopClock
from vk_provider.bursting import gate_state, names
from vk_provider.bursting.gate_state import GateState
from vk_provider.bursting.limits import BreakEven, GateLimits, HomecomingLimits
from vk_provider.bursting.picture import Selection
from vk_provider.bursting.situation import Rules
from vk_provider.controllers.cluster_view import ClusterView
from vk_provider.controllers.deletion_costs import DeletionCosts
from vk_provider.controllers.gate import GateController
from vk_provider.controllers.means import ControllerMeans
from vk_provider.controllers.prometheus_signal import PrometheusReader
from vk_provider.kube.events import EventRecorder
from vk_provider.metrics import Metrics
from vk_provider.settings_bursting_gate import GateSettings

START = datetime(2026, 1, 1, tzinfo=UTC)
NODE = "burst"
GPU = "nvidia.com/gpu"
QUICK = GateLimits(
    close_after=10, stable_for=20, cold_start_factor=0, dwell=5, scarce_for=600, max_transitions=20
)
Loops = Callable[[ControllerMeans, ClusterView], Sequence[Any]]


class GateBench:
    """The API server and the controllers of one process; `start` and `stop` may be repeated."""

    def __init__(
        self,
        api: MemoryApi | None = None,
        *,
        limits: GateLimits = QUICK,
        settings: GateSettings | None = None,
        nodes: Sequence[str] = (NODE,),
        prometheus: Callable[[LoopClock], PrometheusReader] | None = None,
    ) -> None:
        self.api = api or MemoryApi()
        self.may_act = True
        self.metrics = Metrics()
        self._rules = Rules(Selection(), limits, HomecomingLimits(), BreakEven())
        self._settings = settings or GateSettings(limits=limits, heartbeat_every=5)
        self._nodes = nodes
        self._make_prometheus = prometheus
        self._running: list[asyncio.Task[None]] = []
        self._numbers = itertools.count()

    async def __aenter__(self) -> Self:
        if self.api.get("nodes", "home-0", "") is None:
            for name in self._nodes:
                self.virtual(name)
            self.home("home-0", 4)
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """A leader begins: everything is new but the API server."""
        clock = LoopClock(START)
        client = MemoryClient(self.api)
        events = EventRecorder(client, "bench")
        self.means = ControllerMeans(
            client, clock, self.metrics, events, lambda: self.may_act, lambda: 0.5
        )
        self.view = ClusterView(client, self._rules.selection)
        self.prometheus = None if self._make_prometheus is None else self._make_prometheus(clock)
        self.controller = GateController(
            self.means, self.view, self._rules, self._settings, self.prometheus
        )
        costs = DeletionCosts(self.means, self.view, -100)
        works = [events.run(), self.view.run(), self.controller.run(), costs.run()]
        if self.prometheus is not None:
            works.append(self.prometheus.run(5.0))
        self._running = [asyncio.ensure_future(work) for work in works]

    async def stop(self) -> None:
        """The leader is gone."""
        for task in self._running:
            task.cancel()
        ends = await asyncio.gather(*self._running, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end

    def now(self) -> datetime:
        """The bench's time."""
        return self.means.clock.now()

    def home(self, name: str, gpus: int) -> None:
        """A home node."""
        ready = {"type": "Ready", "status": "True"}
        status = {"allocatable": {GPU: str(gpus)}, "conditions": [ready]}
        self.api.store.put("nodes", {"metadata": {"name": name}, "spec": {}, "status": status})

    def virtual(self, name: str = NODE, **annotations: str) -> None:
        """A node of ours."""
        taint = {"key": names.PROVIDER_TAINT, "value": "vk-provider", "effect": "NoSchedule"}
        body = {
            "metadata": {
                "name": name,
                "uid": name,
                "labels": {"type": "virtual-kubelet"},
                "annotations": {names.GATE_MANAGED: "true", **annotations},
            },
            "spec": {"taints": [taint]},
            "status": {"capacity": {GPU: "20"}, "conditions": []},
        }
        self.api.store.put("nodes", body)

    def pod(self, name: str, node: str = "", **more: Any) -> None:
        """An inference pod: on a node and Ready, or unschedulable from now on."""
        at = self.now().strftime("%Y-%m-%dT%H:%M:%SZ") if self._running else "2026-01-01T00:00:00Z"
        is_ready = more.pop("ready", bool(node))
        conditions = [
            {"type": "Ready", "status": str(is_ready), "lastTransitionTime": at},
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
            if node
            else {
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "lastTransitionTime": at,
            },
        ]  # fmt: skip
        limits = {"limits": {GPU: "1"}}
        body: Object = {
            "metadata": {
                "name": name,
                "uid": name,
                "namespace": "web",
                "creationTimestamp": at,
                "labels": {names.BURST_LABEL: "true"},
                "ownerReferences": [
                    {"kind": "ReplicaSet", "name": "chat", "uid": "rs", "controller": True}
                ],
            },
            "spec": {
                "nodeName": node or None,
                "containers": [{"name": "c", "resources": limits}],
                "tolerations": [{"key": names.PROVIDER_TAINT, "operator": "Exists"}],
            },
            "status": {"phase": "Running" if is_ready else "Pending", "conditions": conditions},
        }
        body["metadata"] |= more
        self.api.store.put("pods", body)

    def remove(self, *pods: str) -> None:
        """Pods are gone."""
        for name in pods:
            self.api.store.remove("pods", "web", name)

    def node(self, name: str = NODE) -> Object:
        """The virtual node."""
        found = self.api.get("nodes", name, "")
        assert found is not None
        return found

    def gate(self, name: str = NODE) -> str | None:
        """The gate's taint."""
        taints = self.node(name)["spec"]["taints"]
        return next((t["value"] for t in taints if t["key"] == names.GATE_TAINT), None)

    def state(self, name: str = NODE) -> GateState | None:
        """What is written on the node."""
        annotations = self.node(name)["metadata"].get("annotations") or {}
        return gate_state.read(annotations.get(names.GATE_STATE))

    def known(self) -> GateState:
        """What is written on the node; it must be something."""
        found = self.state()
        assert found is not None
        return found

    def value(self, metric: str, **labels: str) -> float | None:
        """One sample of ours."""
        return self.metrics.registry.get_sample_value(f"vk_provider_{metric}", labels)

    async def until(self, holds: Callable[[], bool], seconds: float = 120.0) -> float:
        """Wait until it holds; how long that took."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not holds():
            if loop.time() - began > seconds:
                raise AssertionError(f"not within {seconds} s; gate {self.gate()}: {self.state()}")
            await asyncio.sleep(0.1)
        return loop.time() - began
