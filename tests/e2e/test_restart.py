"""The process dies and comes back; the fake's instances, which live in it, are lost with it."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime

import pytest

from tests.e2e.node_under_test import NodeUnderTest, condition
from tests.e2e.workloads import (
    TOLERATE_ALL,
    Workloads,
    deployment,
    phase_of,
    pod_template,
    reason_of,
    state_of,
    steered,
)
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

LAG_SECONDS = 3
NODE_SPEC = {
    "backends": [{"name": "fake", "provider": "fake", "config": {"listLagSeconds": LAG_SECONDS}}],
    # A killed leader's Lease must run out before the next start may lead.
    "leaderElection": {
        "namespace": "vk-provider",
        "leaseDurationSeconds": 6,
        "renewDeadlineSeconds": 4,
        "retryPeriodSeconds": 1,
    },
}


def started_leading(node: NodeUnderTest) -> datetime:
    """When the present process began to lead, by its log."""
    lines = [line for line in node.log.splitlines() if "leading: " in line]
    return datetime.fromisoformat(json.loads(lines[-1])["ts"])


async def test_lost_instances_fail_only_when_their_absence_is_sure(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """Two complete lists, a lag apart; a Deployment's pod is replaced, a bare one is not."""
    await workloads.create_pod("bare", pod_template(node.name))
    await workloads.create("deployments", deployment("web", 2, pod_template(node.name)))
    await workloads.pod_in("bare", "Running")
    await workloads.ready("deployments", "web", 2)
    old = {pod["metadata"]["uid"] for pod in await workloads.pods("app=web")}

    await node.restart(kill=True)

    bare = await workloads.pod_in("bare", "Failed")
    assert reason_of(bare) == "ProviderLost"
    assert condition(bare, "DisruptionTarget")["reason"] == "TerminationByKubelet"
    assert state_of(bare)["terminated"]["exitCode"] == 137
    assert state_of(bare)["terminated"]["reason"] == "ContainerStatusUnknown"
    ended = datetime.fromisoformat(condition(bare, "Ready")["lastTransitionTime"])
    # The API's times are whole seconds.
    assert (ended - started_leading(node)).total_seconds() > LAG_SECONDS - 1
    await workloads.event("bare", "ProviderLost")
    await workloads.event("bare", "NotRecreated")
    await workloads.ready("deployments", "web", 2)
    running = {
        pod["metadata"]["uid"]
        for pod in await workloads.pods("app=web")
        if phase_of(pod) == "Running"
    }
    assert len(running) == 2
    assert not running & old


async def test_pods_bound_while_nobody_looked_are_created(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """They have no placement yet, so nothing was made for them: one create each."""
    await node.kill()
    await workloads.create("deployments", deployment("web", 3, pod_template(node.name)))

    async def bound() -> bool:
        pods = await workloads.pods()
        return len(pods) == 3 and all(pod["spec"].get("nodeName") for pod in pods)

    await eventually(bound, "binding of all pods")
    await node.start()

    await workloads.ready("deployments", "web", 3)
    assert await node.metric("vk_provider_backend_requests_total", call="create", outcome="ok") == 3
    assert len(await workloads.pods()) == 3


async def test_clean_stop_leaves_pods_as_they_are(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """Neither their status nor the Node's Ready changes: nothing is evicted (C019)."""
    await workloads.create_pod("app", pod_template(node.name))
    before = await workloads.pod_in("app", "Running")

    assert await node.stop() == 0
    assert await node.leader() == ""
    await asyncio.sleep(2)

    after = await workloads.get("pods", "app")
    assert after is not None
    assert after["status"] == before["status"]
    assert condition(await node.node(), "Ready")["status"] == "True"
    await node.start()


async def test_pod_deleted_while_nobody_looked_leaves(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """Its instance is surely gone, then the object goes (C001)."""
    await workloads.create_pod("app", pod_template(node.name))
    await workloads.pod_in("app", "Running")
    await node.kill()

    await workloads.delete("pods", "app")
    await asyncio.sleep(1)
    assert await workloads.get("pods", "app") is not None
    await node.start()

    await workloads.gone("pods", "app", seconds=40)


async def test_ended_pods_are_not_touched_by_a_restart(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """A terminal phase is never left, nor written again."""
    notes = steered(run_seconds=0.5)
    await workloads.create_pod("done", pod_template(node.name, notes, restartPolicy="Never"))
    await workloads.pod_in("done", "Succeeded")
    before = await workloads.until(
        "pods", "done", lambda pod: state_of(pod)["terminated"].get("message"), "last words"
    )

    await node.restart()
    await asyncio.sleep(LAG_SECONDS + 2)

    after = await workloads.get("pods", "done")
    assert after is not None
    assert (after["status"], after["metadata"]) == (before["status"], before["metadata"])


async def test_a_storm_is_remembered(node: NodeUnderTest, workloads: Workloads) -> None:
    """The Failed pods in the API are its memory: a restart is no fresh start for their owner."""
    template = pod_template(
        node.name, steered(unsupported="spec.hostIPC"), tolerations=TOLERATE_ALL
    )
    await workloads.create("deployments", deployment("stormy", 1, template))

    async def held() -> bool:
        pods = await workloads.pods()
        return sum(phase_of(pod) == "Failed" for pod in pods) >= 5 and len(pods) > 5

    await eventually(held, "a held owner")
    await node.restart()
    await asyncio.sleep(5)

    # At most the token that came meanwhile was spent.
    failed = [pod for pod in await workloads.pods() if phase_of(pod) == "Failed"]
    assert 5 <= len(failed) <= 7
    await workloads.delete("deployments", "stormy")
