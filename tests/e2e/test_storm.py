"""What would run away elsewhere: one pod that always fails, and fifty that wait at a door."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from tests.e2e.node_under_test import USER, NodeUnderTest
from tests.e2e.workloads import (
    TOLERATE_ALL,
    Workloads,
    deployment,
    phase_of,
    pod_template,
    steered,
    waiting_reason,
)
from tests.rig import audit
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

STORM_SECONDS = 60
MOST_FAILED = 12
WAITING = 50


async def test_storm_of_one_replica_is_paced(node: NodeUnderTest, workloads: Workloads) -> None:
    """At most twelve Failed pods a minute, and other owners run as if there were none."""
    mark = workloads.bed.audit_mark()
    template = pod_template(
        node.name, steered(unsupported="spec.hostIPC"), tolerations=TOLERATE_ALL
    )
    await workloads.create("deployments", deployment("stormy", 1, template))
    begun = time.monotonic()

    await eventually(lambda: _has_failed(workloads, 5), "the first five", seconds=20)
    calm = time.monotonic()
    await workloads.create("deployments", deployment("calm", 5, pod_template(node.name)))
    await workloads.ready("deployments", "calm", 5, seconds=15)
    took = time.monotonic() - calm
    await asyncio.sleep(max(0.0, STORM_SECONDS - (time.monotonic() - begun)))

    pods = await workloads.pods("app=stormy")
    failed = [pod for pod in pods if phase_of(pod) == "Failed"]
    held = [pod for pod in pods if phase_of(pod) == "Pending"]
    events = await workloads.bed.settled_audit_events(mark)
    await workloads.delete("deployments", "stormy")
    assert 5 < len(failed) <= MOST_FAILED
    assert [waiting_reason(pod) for pod in held] == ["CreateBackOff"]
    assert await workloads.events(held[0]["metadata"]["name"], "BackOff")
    assert took < 15
    patches = audit.count(
        events, user=USER, verb="patch", resource="pods/status", namespace=workloads.namespace
    )
    # One Failed each, one for the pod that waits, two for each calm pod.
    assert patches <= 2 * len(failed) + 2 + 2 * 5


async def _has_failed(workloads: Workloads, count: int) -> bool:
    pods = await workloads.pods("app=stormy")
    return sum(phase_of(pod) == "Failed" for pod in pods) >= count


class Film:
    """Every version of a node and of a namespace's pods, in the order of the API server."""

    def __init__(self, workloads: Workloads, node: str) -> None:
        self._seen: list[dict[str, Any]] = []
        query = "watch=1&timeoutSeconds=250"
        paths = (
            f"/api/v1/nodes?fieldSelector=metadata.name={node}&{query}",
            f"{workloads.path('pods')}?{query}",
        )
        self._tasks = [asyncio.create_task(self._run(workloads.bed, path)) for path in paths]

    async def _run(self, bed: ControlPlane, path: str) -> None:
        async for line in bed.stream_lines(path):
            self._seen.append(json.loads(line)["object"])

    async def stop(self) -> list[dict[str, Any]]:
        """All versions, oldest first."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return sorted(self._seen, key=lambda one: int(one["metadata"]["resourceVersion"]))


async def test_reopening_door_lets_in_one_then_two_then_four(
    control_plane: ControlPlane, workloads: Workloads
) -> None:
    """Fifty pods wait; head-room doubles, and never more creates are under way than it allows."""
    spec = {
        "capacity": {"cpu": "1000", "memory": "4Ti", "pods": "64"},
        "door": {"firstCooldownSeconds": 3, "maxCooldownSeconds": 6},
        "backends": [{"name": "fake", "provider": "fake", "config": {"createSeconds": 0.5}}],
    }
    async with NodeUnderTest(control_plane, "reopening", spec) as node:
        node.fail(create="OutOfCapacity")
        await workloads.create_pod("first", pod_template(node.name))
        await workloads.pod_in("first", "Failed")
        film = Film(workloads, node.name)
        template = pod_template(node.name)
        await workloads.create("deployments", deployment("crowd", WAITING, template))

        async def waiting() -> bool:
            return len(await workloads.pods("app=crowd")) == WAITING

        await eventually(waiting, "fifty waiting pods")
        node.fail()
        await workloads.ready("deployments", "crowd", WAITING, seconds=60)
        versions = await film.stop()

    rooms, most = _replay(versions)
    assert rooms[:5] == [1, 3, 7, 15, 31]
    assert most <= 32
    assert not [pod for pod in await workloads.pods("app=crowd") if phase_of(pod) == "Failed"]


def _replay(versions: list[dict[str, Any]]) -> tuple[list[int], int]:
    """Allocatable pods while the door opened, step by step, and the most creates under way.

    Fails where more pods were being created than there was room for at that moment.
    """
    rooms: list[int] = []
    under_way: set[str] = set()
    running: set[str] = set()
    most = 0
    for one in versions:
        if one.get("kind") == "Node":
            room = int(one["status"]["allocatable"]["pods"])
            if room and (not rooms or room > rooms[-1]):
                rooms.append(room)
            continue
        name = one["metadata"]["name"]
        if phase_of(one) == "Running":
            running.add(name)
            under_way.discard(name)
        elif phase_of(one) == "Pending" and one["metadata"].get("annotations", {}).get(
            "vk-provider.dev/placement"
        ):
            under_way.add(name)
        most = max(most, len(under_way))
        assert len(under_way) + len(running) <= (rooms[-1] if rooms else 0), rooms
    return rooms, most
