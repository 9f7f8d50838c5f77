"""What people change in a pod that runs is followed where the backend can, and told where not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.node_under_test import NodeUnderTest, condition
from tests.e2e.other import Other, backend, labels_of
from tests.e2e.workloads import Workloads, phase_of, pod_template
from tests.integration.kubernetes.other_cluster import SHIPPED_NAMESPACE
from tests.rig import audit
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

USER = f"system:serviceaccount:{SHIPPED_NAMESPACE}:vk-provider"
SMALL = {"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1Gi"}}
CONTAINER = {"name": "main", "image": "registry.example/app:1", "resources": SMALL}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def node(control_plane: ControlPlane, other: Other) -> AsyncIterator[NodeUnderTest]:
    """A backend that follows, and one that does not."""
    backends = [backend(other, "kwok"), {"name": "fake", "provider": "fake"}]
    async with NodeUnderTest(control_plane, "following", {"backends": backends}) as running:
        yield running


async def running(
    node: NodeUnderTest, workloads: Workloads, where: str, **spec: Any
) -> dict[str, Any]:
    """A pod that runs on one of the two."""
    made = pod_template(
        node.name, {"vk-provider.dev/backends": where}, {"a": "1", "b": "1"},
        containers=[CONTAINER], **spec,
    )  # fmt: skip
    await workloads.create_pod("app", made)
    return await workloads.pod_in("app", "Running", seconds=60)


async def patch(workloads: Workloads, body: dict[str, Any], subresource: str = "") -> None:
    """Change the pod as its user does."""
    path = workloads.path("pods", "app") + (f"/{subresource}" if subresource else "")
    await workloads.patch(path, body)


async def until(other: Other, home: dict[str, Any], what: str, holds: Any) -> dict[str, Any]:
    """Wait until the instance is so."""

    async def so() -> dict[str, Any] | None:
        found = await other.pod(home)
        return found if holds(found) else None

    return await eventually(so, what, seconds=20)


def image_of(pod: dict[str, Any]) -> str:
    """The first container's."""
    return str(pod["spec"]["containers"][0]["image"])


async def test_image_deadline_tolerations_and_labels_follow(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """The same instance, with the rights that are shipped; and again after a restart of ours."""
    home = await running(node, workloads, "kwok")
    before = await other.pod(home)
    mark = other.bed.audit_mark()
    tolerations = [*home["spec"]["tolerations"], {"key": "spot", "operator": "Exists"}]
    spec = {
        "containers": [{"name": "main", "image": "registry.example/app:2"}],
        "activeDeadlineSeconds": 3600,
        "tolerations": tolerations,
    }

    await patch(workloads, {"metadata": {"labels": {"a": "2", "b": None}}, "spec": spec})
    after = await until(other, home, "the new image", lambda pod: image_of(pod).endswith(":2"))

    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["activeDeadlineSeconds"] == 3600
    assert {"key": "spot", "operator": "Exists"} in after["spec"]["tolerations"]
    assert labels_of(after)["a"] == "2"
    assert "b" not in labels_of(after)
    await node.stop()
    image = [{"name": "main", "image": "registry.example/app:3"}]
    await patch(workloads, {"spec": {"containers": image}})
    await node.start()
    await until(other, home, "what changed meanwhile", lambda pod: image_of(pod).endswith(":3"))
    refused = audit.forbidden(await other.bed.settled_audit_events(mark), USER)
    assert not refused, audit.describe(refused)
    assert await workloads.events("app", "UpdateIgnored") == []


async def test_a_resize_follows(node: NodeUnderTest, workloads: Workloads, other: Other) -> None:
    """Through the subresource, and what the other kubelet makes of it is told at home."""
    home = await running(node, workloads, "kwok")
    amounts = {"cpu": "2", "memory": "2Gi"}
    larger = {"requests": amounts, "limits": amounts}
    # An API server lets nobody resize what reports no size.
    await _report_size(other, await other.pod(home))
    await workloads.until("pods", "app", lambda pod: _size(pod).get("cpu") == "1", "its size")

    await patch(
        workloads, {"spec": {"containers": [{"name": "main", "resources": larger}]}}, "resize"
    )
    after = await until(
        other, home, "the new size",
        lambda pod: pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "2",
    )  # fmt: skip

    await _report_size(other, after)
    await workloads.until("pods", "app", lambda pod: _size(pod) == amounts, "its new size")


async def _report_size(other: Other, instance: dict[str, Any]) -> None:
    """As the other kubelet does."""
    statuses = instance["status"]["containerStatuses"]
    statuses[0]["resources"] = instance["spec"]["containers"][0]["resources"]
    await other.patch_status(instance, {"containerStatuses": statuses})


def _size(pod: dict[str, Any]) -> dict[str, str]:
    status = pod["status"]["containerStatuses"][0]
    return dict(status.get("resources", {}).get("limits") or {})


async def test_a_debugger_is_added_to_the_pod_that_runs(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """By kubectl debug; each state of it is told, and the pod stays Ready."""
    home = await running(node, workloads, "kwok")

    await workloads.kubectl(
        "debug", "app", "--image=registry.example/tools:1", "--container=debugger", "--target=main"
    )
    instance = await until(
        other, home, "the debugger", lambda pod: "ephemeralContainers" in pod["spec"]
    )

    (debugger,) = instance["spec"]["ephemeralContainers"]
    assert (debugger["name"], debugger["targetContainerName"]) == ("debugger", "main")
    shown = await workloads.until("pods", "app", _has_debugger, "its debugger")
    assert _debugger(shown)["state"]["waiting"]["reason"] == "ContainerCreating"
    status = {"name": "debugger", "image": debugger["image"], "imageID": "", "ready": False}
    states: dict[str, dict[str, Any]] = {
        "running": {"startedAt": "2026-01-01T00:00:00Z"},
        "terminated": {"exitCode": 3},
    }
    for kind, facts in states.items():
        told = {**status, "restartCount": 0, "state": {kind: facts}}
        await other.patch_status(instance, {"ephemeralContainerStatuses": [told]})
        shown = await workloads.until("pods", "app", partial(_is_debugger, kind), kind)
    assert _debugger(shown)["state"]["terminated"]["exitCode"] == 3
    assert phase_of(shown) == "Running"
    assert condition(shown, "Ready")["status"] == "True"


def _has_debugger(pod: dict[str, Any]) -> bool:
    return "ephemeralContainerStatuses" in pod["status"]


def _is_debugger(kind: str, pod: dict[str, Any]) -> bool:
    return kind in _debugger(pod)["state"]


def _debugger(pod: dict[str, Any]) -> dict[str, Any]:
    (found,) = pod["status"]["ephemeralContainerStatuses"]
    return dict(found)


async def test_where_a_backend_can_not_follow_its_user_is_told(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """One Event, and for a debugger the reason why it waits."""
    await running(node, workloads, "fake")

    await patch(
        workloads, {"spec": {"containers": [{"name": "main", "image": "registry.example/app:2"}]}}
    )
    event = await workloads.event("app", "UpdateIgnored")
    await patch(
        workloads,
        {"spec": {"ephemeralContainers": [{"name": "debugger", "image": "registry.example/t:1"}]}},
        "ephemeralcontainers",
    )
    shown = await workloads.until("pods", "app", _has_debugger, "its debugger")

    assert "spec.containers[0].image was changed from registry.example/app:1" in event["message"]
    assert "delete the pod to have it made anew" in event["message"]
    assert "can't add a container" in json.dumps(_debugger(shown)["state"]["waiting"])
    assert len(await workloads.events("app", "UpdateIgnored")) == 1
