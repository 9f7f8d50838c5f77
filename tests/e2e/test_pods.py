"""Pods on the real control plane: what a kubelet would do with them, done by the virtual node."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.e2e.node_under_test import USER, NodeUnderTest, condition
from tests.e2e.workloads import (
    TOLERATE_ALL,
    Workloads,
    daemonset,
    deployment,
    job,
    phase_of,
    pod_template,
    reason_of,
    state_of,
    statefulset,
    steered,
    waiting_reason,
)
from tests.rig import audit
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_running_pod_has_a_complete_status(node: NodeUnderTest, workloads: Workloads) -> None:
    """Every field that a kubelet writes for a running pod is there, and nothing is invented."""
    made = await workloads.create_pod("app", pod_template(node.name))

    pod = await workloads.pod_in("app", "Running")

    status = pod["status"]
    kinds = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
    assert {kind: condition(pod, kind)["status"] for kind in kinds} == dict.fromkeys(kinds, "True")
    assert status["hostIP"] == "127.0.0.1"
    assert status["hostIPs"] == [{"ip": "127.0.0.1"}]
    assert status["startTime"] >= made["metadata"]["creationTimestamp"]
    assert status["qosClass"] == made["status"]["qosClass"]
    assert status["observedGeneration"] == pod["metadata"]["generation"]
    assert "podIP" not in status
    (container,) = status["containerStatuses"]
    assert container["state"]["running"]["startedAt"]
    assert (container["ready"], container["started"], container["restartCount"]) == (True, True, 0)
    assert container["name"] == "main"
    assert container["image"] == "registry.example/app:1"
    assert container["containerID"].startswith("fake://")
    assert container["imageID"] is not None
    assert container["lastState"] == {}


async def test_running_costs_two_status_patches_and_no_get(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """One before the create call, one at Running."""
    mark = workloads.bed.audit_mark()
    await workloads.create_pod("app", pod_template(node.name))
    await workloads.pod_in("app", "Running")

    events = await workloads.bed.settled_audit_events(mark)

    ours = [
        (event["verb"], audit.resource_of(event))
        for event in audit.select(events, user=USER)
        if event.get("objectRef", {}).get("namespace") == workloads.namespace
    ]
    assert ours.count(("patch", "pods/status")) == 2
    assert not [call for call in ours if call[0] == "get"]


@pytest.mark.parametrize(
    ("policy", "exit_code", "phase", "reason"),
    [
        ("Never", 0, "Succeeded", ""),
        ("Never", 3, "Failed", ""),
        ("OnFailure", 0, "Succeeded", ""),
        ("OnFailure", 3, "Failed", "ContainerExited"),
        ("Always", 0, "Failed", "ContainerExited"),
        ("Always", 3, "Failed", "ContainerExited"),
    ],
)
async def test_first_end_is_final(
    node: NodeUnderTest,
    workloads: Workloads,
    policy: str,
    exit_code: int,
    phase: str,
    reason: str,
) -> None:
    """We never restart: what the policy would restart fails, with the observed exit code."""
    notes = steered(run_seconds=1, exit_code=exit_code)
    await workloads.create_pod("app", pod_template(node.name, notes, restartPolicy=policy))

    pod = await workloads.pod_in("app", phase)

    ended = state_of(pod)["terminated"]
    assert reason_of(pod) == reason
    assert ended["exitCode"] == exit_code
    assert ended["startedAt"] <= ended["finishedAt"]
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    assert not condition(pod, "DisruptionTarget")
    assert condition(pod, "Ready")["status"] == "False"


async def test_jobs_complete_and_fail(node: NodeUnderTest, workloads: Workloads) -> None:
    """By the exit codes of their pods."""
    good = pod_template(node.name, steered(run_seconds=0.5))
    bad = pod_template(node.name, steered(run_seconds=0.5, exit_code=3))
    await workloads.create("jobs", job("good", good, completions=2, parallelism=2))
    await workloads.create("jobs", job("bad", bad, backoffLimit=0))

    await workloads.until("jobs", "good", lambda one: condition(one, "Complete"), "complete")
    failed = await workloads.until("jobs", "bad", lambda one: condition(one, "Failed"), "failed")

    assert failed["status"]["failed"] == 1


async def test_disruption_is_ignored_by_a_jobs_policy(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """A Failed of ours carries DisruptionTarget, so that a podFailurePolicy need not count it."""
    notes = steered(run_seconds=1, ended_by="Lost")
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    body = job(
        "train",
        pod_template(node.name, notes),
        backoffLimit=0,
        podFailurePolicy={"rules": [rule]},
        podReplacementPolicy="Failed",
    )
    await workloads.create("jobs", body)

    async def replaced() -> bool:
        pods = await workloads.pods()
        return any(phase_of(pod) == "Failed" for pod in pods) and len(pods) > 1

    await eventually(replaced, "a replacement")

    found = await workloads.get("jobs", "train")
    assert found is not None
    assert not condition(found, "Failed")
    assert found["status"].get("failed", 0) == 0
    await workloads.delete("jobs", "train")


async def test_graceful_delete_waits_for_the_instance(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """The pod leaves the API after its instance, with a final status before (C002)."""
    await workloads.create_pod("app", pod_template(node.name, terminationGracePeriodSeconds=5))
    await workloads.pod_in("app", "Running")
    mark = workloads.bed.audit_mark()

    await workloads.delete("pods", "app")
    await workloads.gone("pods", "app", seconds=15)

    events = await workloads.bed.settled_audit_events(mark)
    ours = audit.select(events, user=USER, namespace=workloads.namespace)
    calls = [
        (event["verb"], audit.resource_of(event))
        for event in ours
        if audit.resource_of(event).startswith("pods")
    ]
    assert calls == [("patch", "pods/status"), ("delete", "pods")]
    assert await instances_of(node, workloads) == 0


async def instances_of(node: NodeUnderTest, workloads: Workloads) -> int:
    """How many pods of the namespace have a running instance, by the kubelet's own port."""
    _, answer = await node.kubelet("/runningpods")
    pods = json.loads(answer)["items"]
    return sum(pod["metadata"]["namespace"] == workloads.namespace for pod in pods)


async def test_force_delete_takes_the_instance_too(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """The object is gone at once, and the debt is paid."""
    before = await node.metric("vk_provider_backend_requests_total", call="delete", outcome="ok")
    await workloads.create_pod("app", pod_template(node.name))
    await workloads.pod_in("app", "Running")

    await workloads.delete("pods", "app", grace=0)

    async def paid() -> bool:
        count = await node.metric("vk_provider_backend_requests_total", call="delete", outcome="ok")
        return count > before

    assert await workloads.get("pods", "app") is None
    await eventually(paid, "the instance's deletion", seconds=20)


async def test_statefulset_recreates_under_the_same_name(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """The late end of the old pod does not touch the new one (C008)."""
    await workloads.create("statefulsets", statefulset("db", 1, pod_template(node.name)))
    old = await workloads.pod_in("db-0", "Running")

    await workloads.delete("pods", "db-0")
    new = await workloads.until(
        "pods",
        "db-0",
        lambda pod: pod["metadata"]["uid"] != old["metadata"]["uid"] and phase_of(pod) == "Running",
        "again",
    )

    await asyncio.sleep(2)  # a few lists more
    now = await workloads.get("pods", "db-0")
    assert now is not None
    assert now["metadata"]["uid"] == new["metadata"]["uid"]
    assert phase_of(now) == "Running"


async def test_daemonset_pod_stays_pending(node: NodeUnderTest, workloads: Workloads) -> None:
    """Nothing is bought for it, one Event says so, and it is never Failed (C059)."""
    spec: dict[str, Any] = {
        "tolerations": TOLERATE_ALL,
        "hostNetwork": True,
        "volumes": [{"name": "proc", "hostPath": {"path": "/proc"}}],
    }
    await workloads.create("daemonsets", daemonset("agent", pod_template(node.name, **spec)))

    async def waits() -> dict[str, Any] | None:
        pods = await workloads.pods()
        found = [pod for pod in pods if waiting_reason(pod) == "DaemonSetNotSupported"]
        return found[0] if found else None

    pod = await eventually(waits, "the DaemonSet's pod")

    assert phase_of(pod) == "Pending"
    await workloads.event(pod["metadata"]["name"], "DaemonSetNotSupported")
    assert await workloads.events(pod["metadata"]["name"], "Created") == []


async def test_ready_flipped_from_outside_is_restored(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """As after a spell of NotReady, though the backend has nothing new to say (C047)."""
    await workloads.create_pod("app", pod_template(node.name))
    await workloads.pod_in("app", "Running")

    flip = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    await workloads.patch(workloads.path("pods", "app") + "/status", flip)

    await workloads.until(
        "pods", "app", lambda pod: condition(pod, "Ready")["status"] == "True", "Ready again"
    )


async def test_active_deadline_fails_the_pod(node: NodeUnderTest, workloads: Workloads) -> None:
    """Counted from startTime, with a kubelet's words."""
    await workloads.create_pod("app", pod_template(node.name, activeDeadlineSeconds=2))

    pod = await workloads.pod_in("app", "Failed")

    assert reason_of(pod) == "DeadlineExceeded"
    assert state_of(pod)["terminated"]["exitCode"] == 137
    assert await instances_of(node, workloads) == 0


async def test_readiness_gate_holds_ready_back(node: NodeUnderTest, workloads: Workloads) -> None:
    """Ready follows a gate's condition, which somebody else writes and we keep."""
    gates = [{"conditionType": "example.com/lb"}]
    await workloads.create_pod("app", pod_template(node.name, readinessGates=gates))
    pod = await workloads.pod_in("app", "Running")
    assert condition(pod, "Ready")["status"] == "False"
    assert condition(pod, "Ready")["reason"] == "ReadinessGatesNotReady"

    gate = {"status": {"conditions": [{"type": "example.com/lb", "status": "True"}]}}
    await workloads.patch(workloads.path("pods", "app") + "/status", gate)

    pod = await workloads.until(
        "pods", "app", lambda pod: condition(pod, "Ready")["status"] == "True", "Ready"
    )
    assert condition(pod, "example.com/lb")["status"] == "True"


async def test_observed_generation_follows_edits(node: NodeUnderTest, workloads: Workloads) -> None:
    """A spec edit that the node need not act on is acknowledged all the same."""
    await workloads.create_pod("app", pod_template(node.name))
    pod = await workloads.pod_in("app", "Running")

    edit = {"spec": {"activeDeadlineSeconds": 3000}}
    edited = await workloads.patch(workloads.path("pods", "app"), edit)

    generation = edited["metadata"]["generation"]
    assert generation > pod["metadata"]["generation"]
    await workloads.until(
        "pods", "app", lambda pod: pod["status"].get("observedGeneration") == generation, "observed"
    )


async def test_finalizer_keeps_the_object_not_the_instance(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """The instance ends, the pod shows it, and leaves when the finalizer is taken away."""
    template = pod_template(node.name)
    template["metadata"]["finalizers"] = ["example.com/hold"]
    await workloads.create_pod("app", template)
    await workloads.pod_in("app", "Running")

    await workloads.delete("pods", "app", grace=1)
    await workloads.until("pods", "app", lambda pod: "terminated" in state_of(pod), "ended")
    assert await instances_of(node, workloads) == 0

    free = [{"op": "remove", "path": "/metadata/finalizers"}]
    await workloads.bed.request_json(
        "PATCH",
        workloads.path("pods", "app"),
        free,
        content_type="application/json-patch+json",
    )
    await workloads.gone("pods", "app")


async def test_deployment_scales_up_and_to_zero(node: NodeUnderTest, workloads: Workloads) -> None:
    """All run, all go, and their instances with them."""
    await workloads.create("deployments", deployment("web", 8, pod_template(node.name)))
    await workloads.ready("deployments", "web", 8)

    await workloads.kubectl("scale", "deployment/web", "--replicas=0")

    async def empty() -> bool:
        return not await workloads.pods()

    await eventually(empty, "the end of all pods", seconds=60)
    assert await instances_of(node, workloads) == 0
