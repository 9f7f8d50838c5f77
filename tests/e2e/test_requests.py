"""What a pod costs: counted in the API server's audit log and in the node's own metrics.

Two PATCHes to Running, one terminal PATCH and one DELETE at the end, no GET, nothing at rest; the
backend is asked for one list per tick, however many pods there are.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from tests.e2e.node_under_test import USER, NodeUnderTest
from tests.e2e.workloads import Workloads, deployment, phase_of, pod_template
from tests.rig import audit
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

REPLICAS = 50
REST_SECONDS = 4.0
TICK_SECONDS = 1.0
NODE_SPEC: Mapping[str, Any] = {"tickSeconds": TICK_SECONDS}


def requests(events: list[audit.Event], namespace: str) -> Counter[tuple[str, str]]:
    """The node's requests about one namespace, Events apart."""
    ours = audit.select(events, user=USER, namespace=namespace)
    counts = audit.requests_of(ours, USER)
    return Counter({key: n for key, n in counts.items() if key[1] != "events"})


async def running(workloads: Workloads) -> list[str]:
    """Wait until every replica is Running; their names."""

    async def probe() -> list[str]:
        pods = await workloads.pods()
        names = [pod["metadata"]["name"] for pod in pods if phase_of(pod) == "Running"]
        return names if len(names) == REPLICAS else []

    return await eventually(probe, f"{REPLICAS} pods Running")


async def scaled_to_nothing(workloads: Workloads) -> None:
    """Scale the Deployment down and wait until no pod is left."""
    await workloads.patch(workloads.path("deployments", "web"), {"spec": {"replicas": 0}})

    async def probe() -> bool:
        return not await workloads.pods()

    await eventually(probe, "no pod left")


def patches_by_pod(events: list[audit.Event], namespace: str) -> Counter[str]:
    """The node's status PATCHes of each pod."""
    found = audit.select(
        events, user=USER, verb="patch", resource="pods/status", namespace=namespace
    )
    return Counter(event["objectRef"]["name"] for event in found)


async def test_counts_requests_per_pod(node: NodeUnderTest, workloads: Workloads) -> None:
    """Up with two PATCHes each, at rest with nothing, down with one PATCH and one DELETE each."""
    bed, namespace = node.bed, workloads.namespace
    mark = bed.audit_mark()
    await workloads.create("deployments", deployment("web", REPLICAS, pod_template(node.name)))
    names = await running(workloads)

    up = await bed.settled_audit_events(mark)
    assert requests(up, namespace) == {("patch", "pods/status"): 2 * REPLICAS}
    assert patches_by_pod(up, namespace) == dict.fromkeys(names, 2)

    mark = bed.audit_mark()
    await asyncio.sleep(REST_SECONDS)
    at_rest = await bed.settled_audit_events(mark)
    assert requests(at_rest, namespace) == {}
    assert audit.select(at_rest, user=USER, resource="pods") == []

    mark = bed.audit_mark()
    await scaled_to_nothing(workloads)
    down = await bed.settled_audit_events(mark)
    each = {("patch", "pods/status"): REPLICAS, ("delete", "pods"): REPLICAS}
    assert requests(down, namespace) == each
    assert patches_by_pod(down, namespace) == dict.fromkeys(names, 1)


async def test_asks_the_backend_once_per_tick(node: NodeUnderTest, workloads: Workloads) -> None:
    """One list per tick, whatever the number of pods, and no other call while nothing changes."""
    await workloads.create("deployments", deployment("web", REPLICAS, pod_template(node.name)))
    await running(workloads)
    before = await backend_calls(node)

    # Counted in ticks of the node itself: a slow machine makes fewer of them.
    async def three_ticks() -> Counter[str] | None:
        calls = await backend_calls(node) - before
        return calls if calls["list"] >= 3 else None

    started = asyncio.get_running_loop().time()
    calls = await eventually(three_ticks, "three lists", interval=0.05)
    took = asyncio.get_running_loop().time() - started

    assert set(calls) == {"list"}
    assert calls["list"] <= took / (0.9 * TICK_SECONDS) + 1
    await scaled_to_nothing(workloads)


async def test_creates_and_deletes_each_pod_once(node: NodeUnderTest, workloads: Workloads) -> None:
    """One create and one delete call per pod, all of them answered."""
    before = await backend_calls(node)
    await workloads.create("deployments", deployment("web", REPLICAS, pod_template(node.name)))
    await running(workloads)
    await scaled_to_nothing(workloads)

    calls = await backend_calls(node) - before

    assert calls["create"] == REPLICAS
    assert calls["delete"] == REPLICAS
    failed = [
        labels
        for labels, value in (await node.metrics())["vk_provider_backend_requests_total"]
        if labels["outcome"] != "ok" and value
    ]
    assert failed == []


async def backend_calls(node: NodeUnderTest) -> Counter[str]:
    """Calls to the backend so far, by kind."""
    counts: Counter[str] = Counter()
    samples = (await node.metrics()).get("vk_provider_backend_requests_total", [])
    for labels, value in samples:
        counts[labels["call"]] += int(value)
    return counts
