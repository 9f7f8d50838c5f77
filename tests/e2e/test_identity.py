"""The rights that `deploy/` ships: after a broad run none was missing and none unused.

The run is made twice: API servers that stream their lists (WatchList) are never asked for a list,
so that right is used with an older one only.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import aiohttp
import pytest

from tests.e2e.node_under_test import USER, NodeUnderTest, kubeconfig_of
from tests.e2e.workloads import (
    TOLERATE_ALL,
    Workloads,
    deployment,
    pod_template,
    steered,
)
from tests.rig import audit, identity
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHOUT_STREAMED_LISTS = ("--feature-gates=WatchList=false",)


class Right(NamedTuple):
    """One verb on one resource; namespace or name empty: any."""

    group: str
    resource: str
    verb: str
    namespace: str
    name: str

    def allows(self, event: Mapping[str, Any]) -> bool:
        """Whether a request makes use of it."""
        about = event.get("objectRef") or {}
        return (
            self.verb == event["verb"]
            and self.resource == audit.resource_of(event)
            and self.group == about.get("apiGroup", "")
            and self.namespace in ("", about.get("namespace"))
            and self.name in ("", about.get("name"))
        )


def rights_of(objects: Sequence[Mapping[str, Any]]) -> Iterator[Right]:
    """Everything that the shipped roles grant, one by one."""
    for role in objects:
        if role["kind"] not in ("Role", "ClusterRole"):
            continue
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        for name in rule.get("resourceNames", [""]):
                            namespace = role["metadata"].get("namespace", "")
                            yield Right(group, resource, verb, namespace, name)


async def test_no_right_is_missing_and_none_unused(control_plane: ControlPlane) -> None:
    """The audit log shows no 403, and a request for every granted verb."""
    async with ControlPlane(apiserver_args=WITHOUT_STREAMED_LISTS) as older:
        runs = await asyncio.gather(_broad_run(control_plane), _broad_run(older))
    events = [event for run in runs for event in run]

    refused = audit.forbidden(events, USER)
    granted = list(rights_of(await identity.rendered(control_plane)))
    used = audit.select(events, user=USER)
    unused = [right for right in granted if not any(right.allows(event) for event in used)]

    assert not refused, audit.describe(refused)
    assert granted
    assert unused == []


async def _broad_run(bed: ControlPlane) -> list[audit.Event]:
    """Everything that a node does in its life, on one control plane."""
    mark = bed.audit_mark()
    await kubeconfig_of(bed)
    namespace = "broad-run"
    await bed.create_namespace(namespace)
    workloads = Workloads(bed, namespace)
    fake = {"name": "fake", "provider": "fake", "config": {"leftovers": [f"{namespace}/gone"]}}
    spec = {"backends": [fake], "door": {"firstCooldownSeconds": 1}}
    async with NodeUnderTest(bed, "identity", spec) as node:
        await _run_workloads(node, workloads)
        await _count_events_up(node, workloads)
        await _read_logs_with_a_token(node, workloads)
        await _until_swept(node)
        assert await node.stop() == 0
        assert await node.leader() == ""
        await node.start()
        await bed.request_json("DELETE", node.lease_path)
        await _until_lease(node)
        await workloads.delete("deployments", "web")
        await workloads.kubectl("delete", "pod", "app", "--wait=true", "--timeout=30s")
    events = await bed.settled_audit_events(mark)
    await bed.request_json("DELETE", f"/api/v1/namespaces/{namespace}")
    return events


async def _run_workloads(node: NodeUnderTest, workloads: Workloads) -> None:
    """Pods with references, pods that fail, and a door that closes and opens."""
    await workloads.create("configmaps", {"metadata": {"name": "c"}, "data": {"a": "b"}})
    await workloads.create("secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v"}})
    sources = [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}]
    container = {"name": "main", "image": "registry.example/app:1", "envFrom": sources}
    await workloads.create_pod("app", pod_template(node.name, containers=[container]))
    await workloads.pod_in("app", "Running")
    stormy = pod_template(node.name, steered(rejected="no"), tolerations=TOLERATE_ALL)
    await workloads.create("deployments", deployment("web", 1, stormy))
    await eventually(lambda: _events(workloads, "BackOff"), "a held pod")
    node.fail(create="OutOfCapacity")
    await workloads.create_pod("full", pod_template(node.name))
    await workloads.pod_in("full", "Failed")
    node.fail()


async def _count_events_up(node: NodeUnderTest, workloads: Workloads) -> None:
    """More than ten similar Events about one pod become one, which is patched from then on."""
    names = [f"none-{number}" for number in range(11)] + ["present"]
    sources = [{"configMapRef": {"name": name, "optional": True}} for name in names]
    sources.append({"secretRef": {"name": "late"}})
    container = {"name": "main", "image": "registry.example/app:1", "envFrom": sources}
    await workloads.create("configmaps", {"metadata": {"name": "present"}, "data": {"a": "b"}})
    await workloads.create_pod("waits", pod_template(node.name, containers=[container]))
    await workloads.waiting("waits", "CreateContainerConfigError")
    reason = "OptionalConfigMapNotFound"

    async def reported(times: int) -> bool:
        events = await workloads.events("waits", reason)
        return sum(int(event["count"]) for event in events) >= times

    await eventually(lambda: reported(11), "eleven Events", seconds=20)
    await workloads.delete("configmaps", "present")
    await eventually(lambda: reported(12), "one more", seconds=20)


async def _events(workloads: Workloads, reason: str) -> bool:
    answer = await workloads.bed.get_json(workloads.path("events"))
    return any(event["reason"] == reason for event in answer["items"])


async def _read_logs_with_a_token(node: NodeUnderTest, workloads: Workloads) -> None:
    """A caller that the node knows only by asking: TokenReview and SubjectAccessReview."""
    await workloads.create("serviceaccounts", {"metadata": {"name": "reader"}})
    rule = {"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": workloads.namespace}
    await workloads.bed.apply(
        [
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": "log-reader"},
                "rules": [rule],
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "log-reader"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "log-reader",
                },
                "subjects": [subject],
            },
        ]
    )
    token = (await workloads.kubectl("create", "token", "reader")).strip()
    path = f"/containerLogs/{workloads.namespace}/app/main"
    headers = {"Authorization": f"Bearer {token}"}
    trust = ssl.create_default_context(cafile=str(node.bed.ca_file))
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"https://127.0.0.1:{node.port}{path}", ssl=trust) as response,
    ):
        assert (response.status, await response.text()) == (200, "started\n")


async def _until_swept(node: NodeUnderTest) -> None:
    """An instance without a pod goes, after the API server was asked for its owner."""

    async def swept() -> bool:
        return await node.metric("vk_provider_instances", node=node.name, phase="Running") == 1

    await eventually(swept, "the sweep of the leftover", seconds=40)


async def _until_lease(node: NodeUnderTest) -> None:
    """The Lease was deleted: it is made again."""
    for _ in range(40):
        try:
            await node.bed.get_json(node.lease_path)
        except RuntimeError:
            await asyncio.sleep(0.5)
        else:
            return
    raise AssertionError("no Lease was made")
