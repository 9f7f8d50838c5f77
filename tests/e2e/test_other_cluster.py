"""Two real control planes: what is bound to the virtual node of the first runs in the second.

The other cluster has nodes that kwok plays, and one whose containers are real processes. The
backend has the rights that are shipped for the other side, and no more.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.node_under_test import NodeUnderTest, condition
from tests.e2e.other import GPU, POOLS, Other, backend, labels_of
from tests.e2e.workloads import (
    Workloads,
    deployment,
    job,
    phase_of,
    pod_template,
    reason_of,
    state_of,
    waiting_reason,
)
from tests.integration.kubernetes.other_cluster import SHIPPED_NAMESPACE
from tests.rig import audit
from tests.rig.access import ApiError
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

USER = f"system:serviceaccount:{SHIPPED_NAMESPACE}:vk-provider"
REAL = {"vk-provider.dev/backends": "real"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def node(control_plane: ControlPlane, other: Other) -> AsyncIterator[NodeUnderTest]:
    """The virtual node: two backends in the same other cluster, one for each kind of node."""
    backends = [backend(other, pool) for pool in POOLS]
    door = {"firstCooldownSeconds": 1, "maxCooldownSeconds": 2, "deniedCooldownSeconds": 2}
    spec = {"backends": backends, "door": door}
    async with NodeUnderTest(control_plane, "other-cluster", spec) as running:
        yield running


def template(node: NodeUnderTest, **spec: Any) -> dict[str, Any]:
    """A pod for the other cluster's kwok nodes."""
    return pod_template(node.name, {"vk-provider.dev/backends": "kwok"}, **spec)


async def running(workloads: Workloads, name: str, made: dict[str, Any]) -> dict[str, Any]:
    """A bare pod that runs over there. Where two were just lost nobody is sent for a moment."""
    for _ in range(5):
        await workloads.create_pod(name, made)
        pod = await workloads.until("pods", name, _is_decided, "decided", 60)
        if phase_of(pod) == "Running":
            return pod
        assert reason_of(pod) == "OutOfCapacity"
        await workloads.delete("pods", name)
        await workloads.gone("pods", name)
        await asyncio.sleep(1)
    raise AssertionError(f"{name} was never let in")


def _is_decided(pod: dict[str, Any]) -> bool:
    return phase_of(pod) in ("Running", "Failed")


async def test_a_deployment_runs_in_the_other_cluster(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """Ready at home as it is there, each pod with one instance that knows whose it is."""
    await workloads.create("deployments", deployment("web", 3, template(node)))

    await workloads.ready("deployments", "web", 3, seconds=60)

    home = await workloads.pods("app=web")
    remote = await other.pods(*home)
    assert len(remote) == 3
    assert {pod["spec"]["nodeName"] for pod in remote} <= {"kwok-1", "kwok-2"}
    assert {pod["spec"]["hostname"] for pod in remote} == {pod["metadata"]["name"] for pod in home}
    assert all(labels_of(pod)["app"] == "web" for pod in remote)
    for pod in home:
        assert condition(pod, "Ready")["status"] == "True"
        assert pod["status"]["hostIP"] == "127.0.0.1"
        assert "podIP" not in pod["status"]

    await workloads.delete("deployments", "web")
    await other.none_left(*home)


async def test_references_go_along_and_are_collected(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """Only the keys that are named; replicas share a copy, which goes with the last of them."""
    secret = {"data": {"password": base64.b64encode(b"x").decode(), "other": "eQ=="}}
    await workloads.create("secrets", {"metadata": {"name": "login"}, **secret})
    await workloads.create("configmaps", {"metadata": {"name": "conf"}, "data": {"a": "1"}})
    reference = {"secretKeyRef": {"name": "login", "key": "password"}}
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "env": [{"name": "PASSWORD", "valueFrom": reference}],
        "volumeMounts": [{"name": "conf", "mountPath": "/conf"}],
    }
    volumes = [{"name": "conf", "configMap": {"name": "conf"}}]
    made = template(node, containers=[container], volumes=volumes)

    await workloads.create("deployments", deployment("web", 2, made))
    await workloads.ready("deployments", "web", 2, seconds=60)

    (login,), (conf,) = await other.copies("secrets"), await other.copies("configmaps")
    assert set(login["data"]) == {"password"}
    assert conf["data"] == {"a": "1"}
    assert len(conf["metadata"]["ownerReferences"]) == 2
    remote = await other.pods(*await workloads.pods("app=web"))
    env = remote[0]["spec"]["containers"][0]["env"]
    assert env[0]["valueFrom"]["secretKeyRef"]["name"] == login["metadata"]["name"]

    await workloads.delete("deployments", "web")

    async def collected() -> bool:
        return not (await other.copies("secrets") or await other.copies("configmaps"))

    await eventually(collected, "the end of the copies", seconds=60)


async def test_references_are_kept_current(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """A change at home reaches the copy, also one that was made while nobody was there."""
    await workloads.create("configmaps", {"metadata": {"name": "conf"}, "data": {"a": "1"}})
    container = {**plain(), "volumeMounts": [{"name": "conf", "mountPath": "/conf"}]}
    item = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    volumes = [
        {"name": "conf", "configMap": {"name": "conf"}},
        {"name": "self", "downwardAPI": {"items": [item]}},
    ]
    await running(workloads, "app", template(node, containers=[container], volumes=volumes))

    async def shown(words: str) -> bool:
        return any(words in str(each.get("data")) for each in await other.copies("configmaps"))

    await workloads.patch(workloads.path("configmaps", "conf"), {"data": {"a": "2", "b": "new"}})
    await eventually(lambda: shown("'b': 'new'"), "the changed content", seconds=30)
    await workloads.patch(workloads.path("pods", "app"), {"metadata": {"labels": {"x": "y"}}})
    await eventually(lambda: shown('x="y"'), "the changed labels", seconds=40)

    await node.stop()
    await workloads.patch(workloads.path("configmaps", "conf"), {"data": {"a": "3", "b": None}})
    await node.start()

    await eventually(lambda: shown("{'a': '3'}"), "what changed meanwhile", seconds=60)


async def test_a_job_ends_with_its_pods(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """The exit code comes home; nothing is left over there."""
    made = pod_template(node.name, REAL, containers=[shell("exit 0")])
    await workloads.create("jobs", job("sum", made, backoffLimit=0))

    await workloads.until(
        "jobs", "sum", lambda one: condition(one, "Complete").get("status") == "True", "done", 60
    )

    (pod,) = await workloads.pods("job-name=sum")
    assert phase_of(pod) == "Succeeded"
    assert state_of(pod)["terminated"]["exitCode"] == 0
    await other.none_left(pod)


async def test_a_pod_deleted_behind_our_back_is_lost_and_recreated(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """Failed, with a disruption that a Job may ignore; the Deployment makes another."""
    await workloads.create("deployments", deployment("web", 1, template(node)))
    await workloads.ready("deployments", "web", 1, seconds=60)
    (old,) = await workloads.pods("app=web")
    instance = await other.pod(old)

    await other.bed.request_json("DELETE", f"{other.path}/pods/{instance['metadata']['name']}")

    failed = await workloads.pod_in(old["metadata"]["name"], "Failed", seconds=60)
    assert reason_of(failed) == "ProviderLost"
    assert condition(failed, "DisruptionTarget")["status"] == "True"

    async def replaced() -> bool:
        pods = await workloads.pods("app=web")
        return any(condition(pod, "Ready").get("status") == "True" for pod in pods if pod != old)

    await eventually(replaced, "the replacement", seconds=60)


async def test_preemption_over_there_is_preemption_at_home(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """The other cluster's own scheduler gives the GPUs to somebody more important."""
    limits = {"resources": {"limits": {GPU: "4"}}}
    container = {"name": "main", "image": "registry.example/app:1", **limits}
    for name in ("one", "two"):
        spec = {**template(node, containers=[container])}
        await running(workloads, name, spec)
    important = {"name": "train", "image": "registry.example/train:1", **limits}
    priority = {"metadata": {"name": "training"}, "value": 1000}
    scheduling = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await other.bed.request_json("POST", scheduling, priority)

    await other.bed.request_json(
        "POST",
        "/api/v1/namespaces/default/pods",
        {
            "metadata": {"name": "train"},
            "spec": {
                "priorityClassName": "training",
                "nodeSelector": {"pool": "kwok"},
                "containers": [important],
            },
        },
    )

    async def taken() -> list[str]:
        pods = [await workloads.get("pods", name) for name in ("one", "two")]
        return [reason_of(pod) for pod in pods if pod and phase_of(pod) == "Failed"]

    assert await eventually(taken, "one of them to be preempted", seconds=60) == ["Preempted"]
    await other.bed.request_json("DELETE", "/api/v1/namespaces/default/pods/train")


async def test_eviction_over_there_is_preemption_at_home(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """As its kubelet says it."""
    pod = await running(workloads, "app", template(node))

    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"}
    await other.patch_status(await other.pod(pod), status)

    failed = await workloads.pod_in("app", "Failed", seconds=60)
    assert reason_of(failed) == "Preempted"
    assert "low on memory" in failed["status"]["message"]


async def test_restarts_over_there_are_told_as_they_are(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """Count, last state and the wait for the next try; the pod stays Running."""
    pod = await running(workloads, "app", template(node))
    ended = {"exitCode": 3, "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z"}
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "imageID": "",
        "ready": False,
        "restartCount": 4,
        "state": {"waiting": waiting, "running": None},
        "lastState": {"terminated": ended},
    }

    await other.patch_status(await other.pod(pod), {"containerStatuses": [container]})

    shown = await workloads.waiting("app", "CrashLoopBackOff", seconds=60)
    (status,) = shown["status"]["containerStatuses"]
    assert phase_of(shown) == "Running"
    assert status["restartCount"] == 4
    assert status["lastState"]["terminated"]["exitCode"] == 3
    assert condition(shown, "Ready")["status"] == "False"


async def test_image_trouble_over_there_is_told_as_it_is(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """Waiting costs nothing there, so the pod waits."""
    gate = {"name": "main", "image": "registry.example/app:1"}
    await workloads.create_pod("app", template(node, containers=[gate], nodeName=node.name))
    pod = await workloads.pod_in("app", "Running", seconds=60)
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    container = {**gate, "imageID": "", "ready": False, "restartCount": 1}
    state = {
        "state": {"waiting": waiting, "running": None},
        "lastState": {"terminated": {"exitCode": 1}},
    }

    await other.patch_status(await other.pod(pod), {"containerStatuses": [container | state]})

    shown = await workloads.waiting("app", "ImagePullBackOff", seconds=60)
    assert phase_of(shown) != "Failed"


async def test_a_quota_over_there_is_out_of_capacity(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """With the other cluster's own words; the door opens again when there is room."""
    quota = {"metadata": {"name": "cap"}, "spec": {"hard": {f"requests.{GPU}": "0"}}}
    await other.bed.request_json("POST", f"{other.path}/resourcequotas", quota)
    limits = {"resources": {"limits": {GPU: "1"}}}
    container = {"name": "main", "image": "registry.example/app:1", **limits}

    async def counted() -> bool:
        found = await other.bed.get_json(f"{other.path}/resourcequotas/cap")
        return "hard" in found.get("status", {})

    await eventually(counted, "the quota to count", seconds=30)
    await workloads.create_pod("app", template(node, containers=[container]))

    try:
        failed = await workloads.pod_in("app", "Failed", seconds=60)
        assert reason_of(failed) == "OutOfCapacity"
        assert "exceeded quota: cap" in failed["status"]["message"]
    finally:
        await other.bed.request_json("DELETE", f"{other.path}/resourcequotas/cap")

    tries = iter(range(20))

    async def room_again() -> bool:
        name = f"again-{next(tries)}"
        await workloads.create_pod(name, template(node, containers=[container]))
        ended = ("Running", "Failed")
        pod = await workloads.until("pods", name, lambda one: phase_of(one) in ended, "decided")
        return phase_of(pod) == "Running"

    await eventually(room_again, "room again", seconds=60, interval=1)


async def test_what_admission_over_there_refuses_is_rejected(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """In its words, and nothing is left."""
    made = template(node, runtimeClassName="not-over-there", containers=[plain()])
    home_class = {"metadata": {"name": "not-over-there"}, "handler": "x"}
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    await workloads.bed.request_json("POST", classes, home_class)

    await workloads.create_pod("app", made)

    failed = await workloads.pod_in("app", "Failed", seconds=60)
    assert reason_of(failed) == "Rejected"
    assert "not-over-there" in failed["status"]["message"]
    assert await other.pods(failed) == []
    await workloads.bed.request_json("DELETE", f"{classes}/not-over-there")


async def test_a_field_that_can_not_be_honoured_is_named(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """By its path; nothing is sent."""
    volumes = [{"name": "host", "hostPath": {"path": "/var/log"}}]
    await workloads.create_pod("app", template(node, hostPID=True, volumes=volumes))

    failed = await workloads.pod_in("app", "Failed", seconds=60)

    assert reason_of(failed) == "Unsupported"
    message = failed["status"]["message"]
    assert "spec.hostPID" in message
    assert "spec.volumes[0].hostPath" in message
    assert await other.pods(failed) == []


async def test_what_waits_for_a_node_over_there_says_so(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """In the other scheduler's words, while it costs nothing."""
    limits = {"resources": {"limits": {GPU: "32"}}}
    container = {"name": "main", "image": "registry.example/app:1", **limits}
    spec = template(node, containers=[container])
    spec["spec"] |= {"nodeName": node.name}
    spec["spec"].pop("nodeSelector")
    del container["resources"]
    container["resources"] = {"requests": {"memory": "3Ti"}}
    await workloads.create_pod("app", spec)

    shown = await workloads.waiting("app", "Unschedulable", seconds=60)

    message = state_of(shown)["waiting"]["message"]
    assert "nodes are available" in message
    assert phase_of(shown) == "Pending"


def plain() -> dict[str, Any]:
    """A container."""
    return {"name": "main", "image": "registry.example/app:1"}


def shell(script: str) -> dict[str, Any]:
    """A container that runs a script."""
    return {**plain(), "command": ["sh", "-c", script]}


async def test_logs_and_commands_pass_through_both_clusters(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """kubectl at home, a process two API servers away."""
    made = pod_template(node.name, REAL, containers=[shell("echo up; while sleep 0.2; do :; done")])
    await running(workloads, "app", made)

    async def printed() -> bool:
        return (await workloads.kubectl("logs", "app")).strip() == "up"

    await eventually(printed, "the line in the log", seconds=30)
    done = await workloads.kubectl("exec", "app", "--", "sh", "-c", "echo $((6*7)); echo no >&2")
    failed = await workloads.kubectl("exec", "app", "--", "sh", "-c", "exit 3", check=False)

    assert done == "42\n"
    assert "exit code 3" in failed


async def test_a_restart_of_ours_finds_everything_again(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """The same instances, none twice."""
    await workloads.create("deployments", deployment("web", 3, template(node)))
    await workloads.ready("deployments", "web", 3, seconds=60)
    home = await workloads.pods("app=web")
    before = {pod["metadata"]["uid"] for pod in await other.pods(*home)}

    await node.restart(kill=True)
    extra = await running(workloads, "afterwards", template(node))

    after = {pod["metadata"]["uid"] for pod in await other.pods(*home)}
    assert after == before
    assert len(await other.pods(extra)) == 1
    assert {phase_of(pod) for pod in await workloads.pods("app=web")} == {"Running"}


async def test_an_outage_of_the_other_api_kills_nobody(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """Pods stay as they are, new ones start once it is back, and nothing exists twice."""
    pod = await running(workloads, "app", template(node))

    await other.bed.stop("kube-apiserver", grace=0.5)
    await workloads.create("deployments", deployment("late", 1, template(node)))
    await asyncio.sleep(3)
    still = await workloads.get("pods", "app")
    await other.bed.start_apiserver()

    assert still is not None
    assert phase_of(still) == "Running"
    assert condition(still, "Ready")["status"] == "True"
    # An API server that has just started may deny what it would grant: the owner tries again.
    await workloads.ready("deployments", "late", 1, seconds=90)
    late = await workloads.pods("app=late")
    assert len(await other.pods(pod)) == len(await other.pods(*late)) == 1


async def test_at_rest_one_list_a_tick_is_all_that_is_asked(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """However many pods there are."""
    await workloads.create("deployments", deployment("web", 20, template(node)))
    await workloads.ready("deployments", "web", 20, seconds=90)

    async def only_ours() -> bool:
        return len(await other.pods()) == 20  # what earlier tests leave is still being deleted

    await eventually(only_ours, "the end of all other pods", seconds=60)
    await asyncio.sleep(2)
    mark = other.bed.audit_mark()
    ticks = 6

    await asyncio.sleep(ticks)

    events = audit.select(await other.bed.settled_audit_events(mark), user=USER)
    calls = [(event["verb"], audit.resource_of(event)) for event in events]
    assert set(calls) <= {("list", "pods"), ("watch", "pods")}
    lists = calls.count(("list", "pods"))
    # Two backends of this node look at the same cluster.
    assert lists <= 2 * (ticks + 2)


async def test_direct_reach_reports_the_other_pods_own_address(
    control_plane: ControlPlane, workloads: Workloads, other: Other
) -> None:
    """Where home's pods can route to it."""
    spec = {"reach": "direct", "backends": [backend(other, "kwok")]}
    async with NodeUnderTest(control_plane, "direct-reach", spec) as direct:
        pod = await running(workloads, "app", pod_template(direct.name))

        found = await other.pod(pod)

        assert pod["status"]["podIP"] == found["status"]["podIP"]
        await workloads.delete("pods", "app")
        await workloads.gone("pods", "app")


async def test_a_deleted_pod_takes_its_instance_along(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """The object goes only after the instance is gone."""
    pod = await running(workloads, "app", template(node))
    assert waiting_reason(pod) == ""

    await workloads.delete("pods", "app")
    await workloads.gone("pods", "app", seconds=60)

    assert await other.pods(pod) == []
    with pytest.raises(ApiError):
        await other.bed.get_json(f"{other.path}/pods/{pod['metadata']['name']}")
