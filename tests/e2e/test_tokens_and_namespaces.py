"""Tokens of home in another cluster, and several of its namespaces under one identity.

Both are off unless an operator asks for them, and both come with their rights as a manifest: those
are applied here as they are shipped.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml

from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.other import Other, backend
from tests.e2e.workloads import Workloads, pod_template, reason_of, waiting_reason
from tests.integration.kubernetes.other_cluster import SHIPPED_NAMESPACE
from tests.rig import audit
from tests.rig.control_plane import ControlPlane
from tests.rig.identity import rendered
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

DEPLOY = Path(__file__).parents[2] / "deploy"
RIGHTS = DEPLOY / "kustomize/components/service-account-tokens/rights.yaml"
MAPPED = DEPLOY / "kustomize-remote-mapped"
MAPPED_NAMESPACE = "vk-burst-team"
TEAM = "mapped-team"
USER = f"system:serviceaccount:{SHIPPED_NAMESPACE}:vk-provider"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def node(control_plane: ControlPlane, other: Other) -> AsyncIterator[NodeUnderTest]:
    """A node whose pods get tokens of home, and whose one team has a namespace of its own."""
    await other.bed.apply(await rendered(other.bed, MAPPED))
    await control_plane.create_namespace(TEAM)
    tokens = {"enabled": True, "apiServer": {"host": "127.0.0.1", "port": 6443}}
    config = {"serviceAccountTokens": tokens, "namespaces": {TEAM: MAPPED_NAMESPACE}}
    spec = {"backends": [backend(other, "kwok", **config)]}
    async with NodeUnderTest(control_plane, "tokens", spec) as running:
        yield running


async def who_is(bed: ControlPlane, token: str) -> dict[str, Any]:
    """Whom home's API server takes the bearer of a token for; empty if it does not take it."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    url = f"{bed.url}/apis/authentication.k8s.io/v1/selfsubjectreviews"
    headers = {"Authorization": f"Bearer {token}"}
    trust = ssl.create_default_context(cafile=str(bed.ca_file))
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(url, json=review, ssl=trust) as answer,
    ):
        if answer.status == 401:
            return {}
        found: dict[str, Any] = (await answer.json())["status"]["userInfo"]
        return found


async def token_of(other: Other, instance: dict[str, Any]) -> str:
    """The token in the Secret that an instance's injected volume shows."""
    volumes = instance["spec"]["volumes"]
    (sources,) = [v["projected"]["sources"] for v in volumes if "kube-api" in v["name"]]
    secret = sources[0]["secret"]
    assert secret["items"][0]["path"] == "token"
    found = await other.bed.get_json(f"{other.path}/secrets/{secret['name']}")
    (value,) = found["data"].values()
    return base64.b64decode(value).decode()


async def test_a_pod_is_its_service_account_over_there_too(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """Without the right the pod waits and names it; with it there is a token that is bound to the
    pod, with home's CA and address. Another one takes its place; all end with the pod."""
    await workloads.create_pod("app", pod_template(node.name))
    waits = await workloads.waiting("app", "CreateContainerConfigError", seconds=60)
    (status,) = waits["status"]["containerStatuses"]
    assert "apply component service-account-tokens" in status["state"]["waiting"]["message"]

    await workloads.bed.apply(list(yaml.safe_load_all(RIGHTS.read_text())))
    home = await workloads.pod_in("app", "Running", seconds=60)

    instance = await other.pod(home)
    token = await token_of(other, instance)
    user = await who_is(workloads.bed, token)
    assert user["username"] == f"system:serviceaccount:{workloads.namespace}:default"
    assert user["extra"]["authentication.kubernetes.io/pod-uid"] == [home["metadata"]["uid"]]
    (container,) = instance["spec"]["containers"]
    assert {"name": "KUBERNETES_SERVICE_PORT", "value": "6443"} in container["env"]
    paths = [mount["mountPath"] for mount in container["volumeMounts"]]
    assert "/var/run/secrets/kubernetes.io/serviceaccount" in paths
    authorities = [c["data"]["ca.crt"] for c in await other.copies("configmaps") if _is_ca(c)]
    assert authorities == [workloads.bed.ca_file.read_text()]

    await node.restart()

    async def replaced() -> bool:
        return await token_of(other, instance) != token

    await eventually(replaced, "another token in the same place", seconds=40)
    token = await token_of(other, instance)
    assert (await who_is(workloads.bed, token))["username"] == user["username"]
    await workloads.delete("pods", "app")
    await workloads.gone("pods", "app", seconds=60)

    async def nothing_left() -> bool:
        names = [each["metadata"]["name"] for each in await other.copies("secrets")]
        is_there = any(name.startswith("app-") for name in names)
        return not is_there and not await who_is(workloads.bed, token)

    await eventually(nothing_left, "the end of the token", seconds=60)


def _is_ca(copy: dict[str, Any]) -> bool:
    return str(copy["metadata"]["name"]).startswith("kube-root-ca")


async def test_a_token_is_no_use_for_a_pod_that_declines_it(
    node: NodeUnderTest, workloads: Workloads, other: Other
) -> None:
    """As at home."""
    await workloads.create_pod("app", pod_template(node.name, automountServiceAccountToken=False))

    instance = await other.pod(await workloads.pod_in("app", "Running", seconds=60))

    assert "volumes" not in instance["spec"]
    assert "env" not in instance["spec"]["containers"][0]


async def test_a_mapped_namespace_has_its_own_over_there(
    node: NodeUnderTest, control_plane: ControlPlane, workloads: Workloads, other: Other
) -> None:
    """Pods of both, their copies, their logs and their end, with a Role in each and no more."""
    mark = other.bed.audit_mark()
    team = Workloads(control_plane, TEAM)
    await team.create("configmaps", {"metadata": {"name": "conf"}, "data": {"a": "1"}})
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "envFrom": [{"configMapRef": {"name": "conf"}}],
    }
    await team.create_pod("mapped", pod_template(node.name, containers=[container]))
    await workloads.create_pod("plain", pod_template(node.name))
    mapped = await team.pod_in("mapped", "Running", seconds=60)
    plain = await workloads.pod_in("plain", "Running", seconds=60)

    there = f"/api/v1/namespaces/{MAPPED_NAMESPACE}"
    (instance,) = (await other.bed.get_json(f"{there}/pods"))["items"]
    copies = (await other.bed.get_json(f"{there}/configmaps"))["items"]
    assert instance["metadata"]["annotations"]["vk-provider.dev/home-namespace"] == TEAM
    assert {"a": "1"} in [each.get("data") for each in copies]
    assert await other.pods(mapped) == []
    assert len(await other.pods(plain)) == 1

    await node.restart(kill=True)
    await other.bed.request_json("DELETE", f"{there}/pods/{instance['metadata']['name']}")
    lost = await team.pod_in("mapped", "Failed", seconds=60)
    assert reason_of(lost) == "ProviderLost"
    still = await workloads.get("pods", "plain")
    assert still is not None
    assert waiting_reason(still) == ""

    await team.delete("pods", "mapped")
    await team.gone("pods", "mapped", seconds=60)
    assert (await other.bed.get_json(f"{there}/pods"))["items"] == []
    refused = audit.forbidden(await other.bed.settled_audit_events(mark), USER)
    assert not refused, audit.describe(refused)
