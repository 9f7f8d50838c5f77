"""The failure rule on the real control plane, row by row: the door, the verdict, the words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.e2e.node_under_test import NodeUnderTest, condition
from tests.e2e.workloads import (
    TOLERATE_ALL,
    Workloads,
    deployment,
    job,
    phase_of,
    pod_template,
    reason_of,
    state_of,
    steered,
)
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

OFFERS = [
    {"name": "cpu"},
    {"name": "a100", "gpuType": "NVIDIA A100 80GB PCIe", "capacity": 0},
    {"name": "l40s", "gpuType": "NVIDIA L40S"},
]
PENDING_SECONDS = 5
NODE_SPEC = {
    "backends": [{"name": "fake", "provider": "fake", "config": {"offers": OFFERS}}],
    "pendingDeadlineSeconds": PENDING_SECONDS,
}
DOOR_SPEC = {
    "door": {
        "firstCooldownSeconds": 3,
        "maxCooldownSeconds": 6,
        "deniedCooldownSeconds": 3,
        "outageAfterSeconds": 2,
    }
}
TAINT = "vk-provider.dev/unavailable"


@asynccontextmanager
async def door_of(bed: ControlPlane, name: str) -> AsyncIterator[NodeUnderTest]:
    """A node of a test's own, whose door may close without others standing before it."""
    async with NodeUnderTest(bed, name, DOOR_SPEC) as node:
        yield node


def taint_of(node: dict[str, Any]) -> str | None:
    """Why a Node says that it takes nobody, or None."""
    taints = node["spec"].get("taints") or []
    return next((taint["value"] for taint in taints if taint["key"] == TAINT), None)


async def closed(node: NodeUnderTest, why: str | None) -> dict[str, Any]:
    """Wait for this value of the door's taint; return the Node."""

    async def probe() -> dict[str, Any] | None:
        found = await node.node()
        return found if taint_of(found) == why else None

    return await eventually(probe, f"taint {why}", seconds=25)


async def creates(node: NodeUnderTest, **labels: str) -> float:
    """How many create calls were answered."""
    return await node.metric("vk_provider_backend_requests_total", call="create", **labels)


def assert_ours(pod: dict[str, Any], reason: str) -> None:
    """A Failed that Kubernetes may ignore: the disruption was not the pod's doing."""
    assert (phase_of(pod), reason_of(pod)) == ("Failed", reason)
    disruption = condition(pod, "DisruptionTarget")
    assert (disruption["status"], disruption["reason"]) == ("True", "TerminationByKubelet")
    assert pod["status"]["message"]


class Film:
    """What a watch saw, so that the order of writes can be told by their resourceVersions."""

    def __init__(self, bed: ControlPlane, path: str) -> None:
        self.objects: list[dict[str, Any]] = []
        self._work = asyncio.create_task(self._run(bed, f"{path}watch=1&timeoutSeconds=200"))

    async def _run(self, bed: ControlPlane, path: str) -> None:
        async for line in bed.stream_lines(path):
            self.objects.append(json.loads(line)["object"])

    def first(self, holds: Any) -> int:
        """The resourceVersion at which something held for the first time."""
        return min(int(one["metadata"]["resourceVersion"]) for one in self.objects if holds(one))

    async def stop(self) -> None:
        """No more."""
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)


async def test_door_closes_before_a_pod_is_failed_and_reopens_half_way(
    control_plane: ControlPlane, workloads: Workloads
) -> None:
    """Allocatable, taint, Failed, in this order; the replacement waits, and is the probe."""
    async with door_of(control_plane, "door") as node:
        nodes = Film(control_plane, f"/api/v1/nodes?fieldSelector=metadata.name={node.name}&")
        pods = Film(control_plane, workloads.path("pods") + "?")
        node.fail(create="OutOfCapacity")
        await workloads.create("deployments", deployment("web", 1, pod_template(node.name)))

        await closed(node, "capacity")
        await eventually(lambda: _has_failed(workloads), "a Failed pod")
        (failed,) = [pod for pod in await workloads.pods() if phase_of(pod) == "Failed"]
        described = await control_plane.kubectl("describe", "node", node.name)
        node.fail()
        await workloads.ready("deployments", "web", 1)
        reopened = await closed(node, None)
        await nodes.stop()
        await pods.stop()

    assert_ours(failed, "OutOfCapacity")
    assert "containerStatuses" not in failed["status"]
    assert "closed: capacity until" in described
    lowered = nodes.first(lambda one: int(one["status"]["allocatable"]["pods"]) <= 1)
    tainted = nodes.first(lambda one: taint_of(one) == "capacity")
    verdict = pods.first(lambda one: phase_of(one) == "Failed")
    assert lowered < tainted < verdict
    # One that was let in as the probe, and twice as much room as before.
    assert reopened["status"]["allocatable"]["pods"] in ("1", "3")
    assert condition(reopened, "Ready")["status"] == "True"


async def _has_failed(workloads: Workloads) -> bool:
    return any(phase_of(pod) == "Failed" for pod in await workloads.pods())


async def test_pod_bound_at_a_closed_door_is_not_tried(
    control_plane: ControlPlane, workloads: Workloads
) -> None:
    """It tolerates everything and names the node, so it can only be sent home."""
    async with door_of(control_plane, "shut") as node:
        node.fail(create="OutOfCapacity")
        template = pod_template(node.name, nodeName=node.name, tolerations=TOLERATE_ALL)
        await workloads.create_pod("first", template)
        await workloads.pod_in("first", "Failed")
        tried = await creates(node)

        await workloads.create_pod("second", template)
        second = await workloads.pod_in("second", "Failed")

        assert_ours(second, "OutOfCapacity")
        assert "door is closed" in second["status"]["message"]
        assert await creates(node) == tried


async def test_refused_credentials_close_the_backend(
    control_plane: ControlPlane, workloads: Workloads
) -> None:
    """ProviderReady is False and says why, Ready stays True; healed, it opens by itself."""
    async with door_of(control_plane, "denied") as node:
        node.fail(create="ProviderDenied")
        await workloads.create_pod("app", pod_template(node.name))

        assert_ours(await workloads.pod_in("app", "Failed"), "OutOfCapacity")
        found = await closed(node, "denied")
        assert condition(found, "ProviderReady")["status"] == "False"
        assert condition(found, "Ready")["status"] == "True"

        node.fail()
        await closed(node, None)
        await workloads.create_pod("next", pod_template(node.name))
        await workloads.pod_in("next", "Running")


async def test_unserved_create_is_tried_again_then_out_of_capacity(
    control_plane: ControlPlane, workloads: Workloads
) -> None:
    """Three tries of a call that provably created nothing."""
    async with door_of(control_plane, "away") as node:
        node.fail(create="ProviderUnavailable")
        await workloads.create_pod("app", pod_template(node.name))

        assert_ours(await workloads.pod_in("app", "Failed", seconds=40), "OutOfCapacity")
        assert await creates(node, outcome="ProviderUnavailable") == 3


async def test_outage_of_the_api_is_no_death_of_a_pod(
    control_plane: ControlPlane, workloads: Workloads
) -> None:
    """Pods and Ready stay as they are, the door closes after a while and opens again."""
    async with door_of(control_plane, "outage") as node:
        await workloads.create_pod("app", pod_template(node.name))
        before = await workloads.pod_in("app", "Running")

        node.fail(list="ProviderUnavailable")
        found = await closed(node, "outage")

        assert condition(found, "Ready")["status"] == "True"
        assert condition(found, "ProviderReady")["status"] == "False"
        assert await node.metric("vk_provider_backend_up", node=node.name) == 0
        now = await workloads.get("pods", "app")
        assert now is not None
        assert now["status"] == before["status"]

        node.fail()
        await closed(node, None)
        assert await workloads.get("pods", "app") == now


async def test_garbled_answers_change_nothing(
    control_plane: ControlPlane, workloads: Workloads
) -> None:
    """A metric and one line in the log; the pod is as it was."""
    async with door_of(control_plane, "garbled") as node:
        await workloads.create_pod("app", pod_template(node.name))
        before = await workloads.pod_in("app", "Running")

        node.fail(list="GarbledAnswer")

        async def counted() -> bool:
            return await node.metric("vk_provider_garbled_observations_total") >= 2

        await eventually(counted, "two garbled lists", seconds=15)
        assert await workloads.get("pods", "app") == before
        assert node.log.count("the list failed") == 1


async def test_unknown_outcome_makes_no_second_instance(
    control_plane: ControlPlane, workloads: Workloads
) -> None:
    """No create until lists have shown that the first is absent; then one more."""
    async with door_of(control_plane, "unknown") as node:
        node.fail(create="OutcomeUnknown")
        await workloads.create_pod("app", pod_template(node.name))

        async def tried() -> bool:
            return await creates(node, outcome="OutcomeUnknown") >= 1

        await eventually(tried, "the first create", interval=0.02)
        node.fail()

        await workloads.pod_in("app", "Running")
        assert await creates(node, outcome="OutcomeUnknown") == 1
        assert await creates(node, outcome="ok") == 1


def gpu_template(node: NodeUnderTest, gpu_type: str, **spec: Any) -> dict[str, Any]:
    """A pod that asks for one GPU of this type."""
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    notes = {"vk-provider.dev/gpu-types": gpu_type}
    return pod_template(node.name, notes, containers=[container], **spec)


async def test_need_without_capacity_leaves_the_door_open(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """Only that need cools down: another GPU type and CPU pods run on."""
    await workloads.create_pod("a100", gpu_template(node, "NVIDIA A100 80GB PCIe"))
    assert_ours(await workloads.pod_in("a100", "Failed"), "OutOfCapacity")

    await workloads.create_pod("l40s", gpu_template(node, "NVIDIA L40S"))
    await workloads.create_pod("cpu", pod_template(node.name))

    await workloads.pod_in("l40s", "Running")
    await workloads.pod_in("cpu", "Running")
    assert taint_of(await node.node()) is None


async def test_job_that_would_count_it_waits_for_its_deadline(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """Pending, waiting ProviderUnavailable, until pendingDeadlineSeconds."""
    template = gpu_template(node, "NVIDIA A100 80GB PCIe", restartPolicy="OnFailure")
    await workloads.create("jobs", job("train", template, backoffLimit=0))

    async def pod() -> dict[str, Any] | None:
        found = await workloads.pods()
        return found[0] if found else None

    name = (await eventually(pod, "the Job's pod"))["metadata"]["name"]
    await workloads.waiting(name, "ProviderUnavailable")
    failed = await workloads.pod_in(name, "Failed", seconds=PENDING_SECONDS + 15)

    assert_ours(failed, "OutOfCapacity")


async def test_unsupported_fields_are_named_all_at_once(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """One Failed status, one Event, no create, no exception."""
    tried = await creates(node)
    fields = ("spec.hostNetwork", "spec.containers[0].lifecycle.preStop")
    template = pod_template(node.name, steered(unsupported=",".join(fields)))
    await workloads.create_pod("app", template)

    pod = await workloads.pod_in("app", "Failed")
    await workloads.event("app", "Unsupported")

    assert_ours(pod, "Unsupported")
    (event,) = await workloads.events("app", "Unsupported")
    for field in fields:
        assert field in pod["status"]["message"]
        assert field in event["message"]
    assert event["type"] == "Warning"
    assert "containerStatuses" not in pod["status"]
    assert await creates(node) == tried
    assert "Traceback" not in node.log


async def test_refused_request_is_rejected(node: NodeUnderTest, workloads: Workloads) -> None:
    """With the backend's words in status and Event (C036)."""
    template = pod_template(node.name, steered(rejected="no such registry login"))
    await workloads.create_pod("app", template)

    pod = await workloads.pod_in("app", "Failed")

    assert_ours(pod, "Rejected")
    assert "no such registry login" in pod["status"]["message"]
    assert "no such registry login" in (await workloads.event("app", "Rejected"))["message"]
    assert taint_of(await node.node()) is None


@pytest.mark.parametrize(
    ("cause", "reason"),
    [("Lost", "ProviderLost"), ("Preempted", "Preempted"), ("Image", "Rejected")],
)
async def test_end_of_the_machine_is_a_disruption(
    node: NodeUnderTest, workloads: Workloads, cause: str, reason: str
) -> None:
    """Nobody saw the container end, so it ended with 137 and an unknown status."""
    await workloads.create_pod(
        "app", pod_template(node.name, steered(run_seconds=1, ended_by=cause))
    )

    pod = await workloads.pod_in("app", "Failed")

    assert_ours(pod, reason)
    ended = state_of(pod)["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")
    await workloads.event("app", reason)


async def test_vanished_instance_is_replaced(node: NodeUnderTest, workloads: Workloads) -> None:
    """ProviderLost once lists agree, and a new pod by its owner; no NotRecreated for it."""
    template = pod_template(node.name, steered(vanish_after_seconds=2))
    await workloads.create("deployments", deployment("web", 1, template))
    await workloads.ready("deployments", "web", 1)
    (first,) = await workloads.pods()

    failed = await workloads.pod_in(first["metadata"]["name"], "Failed")

    assert_ours(failed, "ProviderLost")

    async def replaced() -> bool:
        return any(
            pod["metadata"]["uid"] != first["metadata"]["uid"] and phase_of(pod) == "Running"
            for pod in await workloads.pods()
        )

    await eventually(replaced, "a replacement", seconds=20)
    assert await workloads.events(first["metadata"]["name"], "NotRecreated") == []
    await workloads.delete("deployments", "web")


async def test_bare_pod_is_told_that_nobody_recreates_it(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """An Event, since no controller will."""
    await workloads.create_pod("app", pod_template(node.name, steered(rejected="no")))
    await workloads.pod_in("app", "Failed")

    event = await workloads.event("app", "NotRecreated")

    assert "no controller" in event["message"]


HUGE = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "2000"}}}


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"containers": [HUGE]}, "OutOfcpu"),
        ({"nodeSelector": {"example.com/no": "such"}}, "NodeAffinity"),
        ({"tolerations": []}, "TaintToleration"),
    ],
)
async def test_node_admits_again_what_bypassed_the_scheduler(
    node: NodeUnderTest, workloads: Workloads, spec: dict[str, Any], reason: str
) -> None:
    """`spec.nodeName` bypasses the scheduler, and so the cost cap; no create is made."""
    tried = await creates(node)
    await workloads.create_pod("app", pod_template(node.name, nodeName=node.name, **spec))

    pod = await workloads.pod_in("app", "Failed")

    assert_ours(pod, reason)
    assert "Pod was rejected" in pod["status"]["message"]
    await workloads.event("app", reason)
    assert await creates(node) == tried


async def test_missing_secret_never_fails_a_pod(node: NodeUnderTest, workloads: Workloads) -> None:
    """It waits as on a kubelet, and starts when the Secret appears."""
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "envFrom": [{"secretRef": {"name": "late"}}],
    }
    await workloads.create_pod("app", pod_template(node.name, containers=[container]))
    await workloads.waiting("app", "CreateContainerConfigError")

    await workloads.create("secrets", {"metadata": {"name": "late"}, "stringData": {"a": "b"}})

    await workloads.pod_in("app", "Running")
