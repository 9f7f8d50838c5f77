"""GPU health on a real cluster with a real Prometheus: what is hot trains no more, and serves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.controllers import means_of
from tests.e2e.shared.cluster import BUILT, GPU, HOME, SharedCluster
from tests.e2e.workloads import Workloads
from tests.rig.polling import eventually
from tests.support.eventually import running
from vk_provider.bursting.gpu_findings import HealthRule
from vk_provider.bursting.gpu_health import HealthPolicy
from vk_provider.bursting.picture import Selection
from vk_provider.controllers.cluster_view import ClusterView
from vk_provider.controllers.gpu_health import GpuHealthController
from vk_provider.controllers.means import ControllerMeans
from vk_provider.controllers.prometheus_client import PrometheusClient
from vk_provider.settings_bursting_gpu_health import XID_CLASSES, GpuHealthSettings
from vk_provider.settings_bursting_prometheus import PrometheusSettings

pytestmark = pytest.mark.asyncio(loop_scope="session")
PROGRAMS = BUILT

KEY = "vk-provider.dev/gpu-health"
MERGE = "application/merge-patch+json"
RULES = (
    HealthRule("HotGpu", "min_over_time(DCGM_FI_DEV_GPU_TEMP[2s])", above=78, unit=" °C"),
    HealthRule(
        "Xid", "sum by (Hostname, gpu, xid) (DCGM_EXP_XID_ERRORS_COUNT)", xid_classes=XID_CLASSES
    ),
)
QUICK = GpuHealthSettings(
    True, every=0.5, policy=HealthPolicy(50, release_after_seconds=1.0), rules=RULES
)


@asynccontextmanager
async def health(
    cluster: SharedCluster, settings: GpuHealthSettings = QUICK, url: str = ""
) -> AsyncIterator[ControllerMeans]:
    """The controller runs, with the shipped rights."""
    asked = PrometheusSettings(url or cluster.prometheus_url, timeout=5)
    async with (
        means_of(cluster.bed, cluster.kubeconfig) as means,
        PrometheusClient(asked) as prometheus,
    ):
        view = ClusterView(means.client, Selection())
        controller = GpuHealthController(means, view, settings, prometheus)
        async with running(view.run()), running(controller.run()):
            yield means


@pytest_asyncio.fixture(loop_scope="session")
async def cool(cluster: SharedCluster) -> AsyncIterator[SharedCluster]:
    """Every node is healthy, before and after."""
    yield cluster
    cluster.gpus.temperatures |= dict.fromkeys(HOME, 60.0)
    cluster.gpus.xids.clear()
    for name in HOME:
        annotations = {"annotations": {f"{KEY}-set-by": None}}
        patch = {"metadata": annotations, "spec": {"taints": []}}
        path = f"/api/v1/nodes/{name}"
        await cluster.bed.request_json("PATCH", path, patch, content_type=MERGE)


async def taint_of(cluster: SharedCluster, node: str) -> str | None:
    """The value of the health taint."""
    found = await cluster.bed.get_json(f"/api/v1/nodes/{node}")
    taints = found["spec"].get("taints") or []
    return next((one["value"] for one in taints if one["key"] == KEY), None)


async def taint_is(cluster: SharedCluster, node: str, value: str | None) -> None:
    """Wait until the taint has this value."""

    async def probe() -> bool:
        return await taint_of(cluster, node) == value

    await eventually(probe, f"{node} {value or 'untainted'}", seconds=30)


def pod(name: str, node: str, *tolerated: str) -> dict[str, Any]:
    """A pod of one GPU that wants this node."""
    resources = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    container = {"name": "main", "image": "registry.example/app:1", "resources": resources}
    tolerations = [
        {"key": KEY, "value": value, "operator": "Equal", "effect": "NoSchedule"}
        for value in tolerated
    ]
    selector = {"kubernetes.io/hostname": node}
    spec = {"containers": [container], "nodeSelector": selector, "tolerations": tolerations}
    return {"metadata": {"name": name}, "spec": spec}


async def test_a_hot_node_serves_and_does_not_train(cool: SharedCluster, jobs: Workloads) -> None:
    """And is taken back once it has been cool for a while."""
    cool.gpus.temperatures["home-2"] = 84
    async with health(cool):
        await taint_is(cool, "home-2", "training-unfit")
        await jobs.create("pods", pod("serves", "home-2", "training-unfit"))
        await jobs.create("pods", pod("trains", "home-2"))
        await jobs.pod_in("serves", "Running")
        waiting = await cool.bed.get_json(jobs.path("pods", "trains"))
        assert waiting["spec"].get("nodeName") is None
        node = await cool.bed.get_json("/api/v1/nodes/home-2")
        assert '"value":"training-unfit"' in node["metadata"]["annotations"][f"{KEY}-set-by"]

        cool.gpus.temperatures["home-2"] = 70
        await taint_is(cool, "home-2", None)
        await jobs.pod_in("trains", "Running")
        await cool.event("home-2", "GpuHealthTainted", "HotGpu: GPU 0 84 °C, limit 78 °C")
        await cool.event("home-2", "GpuHealthReleased", "")
    assert len(await cool.events("home-2", "GpuHealthTainted")) == 1
    node = await cool.bed.get_json("/api/v1/nodes/home-2")
    assert f"{KEY}-set-by" not in node["metadata"]["annotations"]
    for name in ("serves", "trains"):
        await jobs.delete("pods", name, grace=0)


async def test_a_lost_gpu_makes_it_worse_at_once(cool: SharedCluster) -> None:
    """From unfit to dead; a new leader goes on with it."""
    cool.gpus.temperatures["home-1"] = 90
    async with health(cool):
        await taint_is(cool, "home-1", "training-unfit")
        cool.gpus.xids["home-1"] = 79
        await taint_is(cool, "home-1", "dead")
    cool.gpus.xids.clear()
    cool.gpus.temperatures["home-1"] = 60
    async with health(cool):
        await taint_is(cool, "home-1", None)


async def test_no_more_than_the_budget_is_tainted(cool: SharedCluster) -> None:
    """Two of four; the others are told."""
    cool.gpus.temperatures |= dict.fromkeys(HOME, 95.0)
    async with health(cool) as means:
        held = means.metrics.bursting.gpu_health_held_back

        async def told() -> bool:
            return held._value.get() == 2 and bool(await cool.events("home-4", "GpuHealthHeldBack"))

        await eventually(told, "two are held back", seconds=30)
        found = [await taint_of(cool, name) for name in HOME]
    assert found == ["training-unfit", "training-unfit", None, None]


async def test_what_others_have_set_stays(cool: SharedCluster) -> None:
    """Neither made worse nor taken away."""
    taint = {"key": KEY, "value": "drain", "effect": "NoSchedule"}
    path = "/api/v1/nodes/home-3"
    patch = {"spec": {"taints": [taint]}}
    await cool.bed.request_json("PATCH", path, patch, content_type=MERGE)
    cool.gpus.xids["home-3"] = 79
    cool.gpus.temperatures["home-4"] = 90
    async with health(cool):
        await taint_is(cool, "home-4", "training-unfit")
        cool.gpus.xids.clear()
        cool.gpus.temperatures["home-4"] = 60
        await taint_is(cool, "home-4", None)
        assert await taint_of(cool, "home-3") == "drain"


async def test_silence_releases_nobody(cool: SharedCluster) -> None:
    """No Prometheus, a node that is measured no longer, a number that is none."""
    cool.gpus.temperatures["home-1"] = 90
    async with health(cool):
        await taint_is(cool, "home-1", "training-unfit")
    cool.gpus.temperatures["home-1"] = 60
    nowhere = f"http://127.0.0.1:{cool.bed.free_port()}"
    async with health(cool, url=nowhere) as means:
        up = means.metrics.bursting.gpu_health_up.labels("prometheus")
        await asyncio.sleep(3)
        assert up._value.get() == 0
        assert await taint_of(cool, "home-1") == "training-unfit"
    infinite = HealthRule("Strange", "DCGM_FI_DEV_GPU_TEMP / 0", xid_classes=XID_CLASSES)
    async with health(cool, replace(QUICK, rules=(*RULES, infinite))) as means:
        await asyncio.sleep(3)
        assert means.metrics.bursting.gpu_health_up.labels("prometheus")._value.get() == 1
        assert await taint_of(cool, "home-1") == "training-unfit"
        assert await taint_of(cool, "home-2") is None
    del cool.gpus.temperatures["home-1"]
    await asyncio.sleep(2)
    async with health(cool) as means:
        await asyncio.sleep(3)
        assert await taint_of(cool, "home-1") == "training-unfit"
        cool.gpus.temperatures["home-1"] = 60
        await taint_is(cool, "home-1", None)


async def test_alerts_with_a_verdict_taint_as_well(cool: SharedCluster) -> None:
    """Those that are shipped: an XID fires at once, through Prometheus' own rules."""
    shipped = [rule for rule in GpuHealthSettings().rules if rule.name == "Alerts"]
    cool.gpus.xids["home-2"] = 48
    async with health(cool, replace(QUICK, rules=tuple(shipped))):
        await taint_is(cool, "home-2", "drain")
        await cool.event("home-2", "GpuHealthTainted", "GpuXidNeedsReset")


async def test_a_rehearsal_writes_nothing(cool: SharedCluster) -> None:
    """An Event tells what would be done."""
    cool.gpus.temperatures["home-3"] = 99
    async with health(cool, replace(QUICK, dry_run=True)):

        async def told() -> bool:
            messages = await cool.events("home-3", "GpuHealthTainted")
            return any(message.startswith("dry run: ") for message in messages)

        await eventually(told, "an Event", seconds=30)
        await asyncio.sleep(2)
    dry = [one for one in await cool.events("home-3", "GpuHealthTainted") if "dry run" in one]
    found = (await cool.bed.get_json("/api/v1/namespaces/default/events"))["items"]
    counts = [one["count"] for one in found if one["message"] in dry]
    assert counts == [1]
    assert await taint_of(cool, "home-3") is None
