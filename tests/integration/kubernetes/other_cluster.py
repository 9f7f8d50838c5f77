"""The other cluster of a test: a namespace of a real control plane, the shipped Role, a real node.

The node is this very product with local processes as containers, so that logs, exec, ports and
usage are real; the orders that a test gives to a container go through that cluster's own API.
Fed by the suites that try the other-cluster backend.
"""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web
from vk_provider_kubernetes import stamp as marks
from vk_provider_kubernetes.provider import KubernetesProvider, factory
from vk_provider_kubernetes.references import Reference

from tests.e2e.node_under_test import NodeUnderTest
from tests.integration.kubernetes.proxy import ApiProxy, Fault, Handler, status
from tests.rig.control_plane import ControlPlane
from tests.rig.identity import rendered
from tests.rig.polling import eventually
from tests.support.obedient import OBEDIENT, listening
from vk_provider.pods.types import InstanceRef, Json, Stamp
from vk_provider.provider import ProviderContext
from vk_provider.testing.builders import CLUSTER_ID, NODE_NAME
from vk_provider.testing.contract_rig import RETRY_AFTER_SECONDS, CreateFailure, ListFailure
from vk_provider.testing.process_ports import free_port

DEPLOY = Path(__file__).parents[3] / "deploy" / "kustomize-remote"
SHIPPED_NAMESPACE = "vk-burst"
NODE = "other-node"


def _always(response: dict[str, Any]) -> Fault:
    async def fault(request: web.Request, forward: Handler) -> web.StreamResponse:
        headers = {"Retry-After": response["wait"]} if "wait" in response else {}
        return status(response["code"], response["reason"], response["message"], **headers)

    return fault


_FORBIDDEN = {"code": 403, "reason": "Forbidden"}
_WAIT = str(int(RETRY_AFTER_SECONDS))
_THROTTLED = {"code": 429, "reason": "TooManyRequests", "message": "slower", "wait": _WAIT}
CREATE_FAULTS: Mapping[CreateFailure, dict[str, Any]] = {
    CreateFailure.OUT_OF_CAPACITY: {
        **_FORBIDDEN,
        "message": 'pods "x" is forbidden: exceeded quota: cap, requested: pods=1, used: pods=9',
    },
    CreateFailure.DENIED: {
        **_FORBIDDEN,
        "message": 'pods is forbidden: User "vk" cannot create resource "pods" in API group ""',
    },
    CreateFailure.THROTTLED: _THROTTLED,
    CreateFailure.UNAVAILABLE: {
        "code": 500,
        "reason": "InternalError",
        "message": 'Internal error occurred: failed calling webhook "w": connection refused',
    },
    CreateFailure.REJECTED: {
        "code": 422,
        "reason": "Invalid",
        "message": "spec.containers[0].image: Invalid value",
    },
    CreateFailure.OUTCOME_UNKNOWN: {
        "code": 504,
        "reason": "Timeout",
        "message": "the server was unable to return a response in time",
    },
}
LIST_FAULTS: Mapping[ListFailure, dict[str, Any]] = {
    ListFailure.UNAVAILABLE: {"code": 503, "reason": "ServiceUnavailable", "message": "down"},
    ListFailure.THROTTLED: _THROTTLED,
    ListFailure.DENIED: {
        **_FORBIDDEN,
        "message": 'pods is forbidden: User "vk" cannot list resource "pods"',
    },
}


async def _garbage(request: web.Request, forward: Handler) -> web.StreamResponse:
    return web.Response(text="<html>A sign-in page</html>", content_type="text/html")


class OtherCluster:
    """A namespace over there, as a person with all rights sees it. Implements
    ``ContractBackend`` and ``PortBackend``."""

    def __init__(self, bed: ControlPlane, proxy: ApiProxy, namespace: str) -> None:
        self.bed = bed
        self.proxy = proxy
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}/pods"

    async def fail_next_create(self, failure: CreateFailure) -> None:
        answer = _always(CREATE_FAULTS[failure])

        async def made_and_lost(request: web.Request, forward: Handler) -> web.StreamResponse:
            await self._carry_out(request)
            return await answer(request, forward)

        is_made = failure is CreateFailure.OUTCOME_UNKNOWN
        self.proxy.fail_next_create(made_and_lost if is_made else answer)

    async def fail_next_list(self, failure: ListFailure) -> None:
        if failure is ListFailure.GARBAGE:
            self.proxy.fail_next_list(_garbage)
        elif failure is ListFailure.PARTIAL:
            self.proxy.fail_next_list(self._first_page)
            self.proxy.fail_next_list(_always(LIST_FAULTS[ListFailure.UNAVAILABLE]))
        else:
            self.proxy.fail_next_list(_always(LIST_FAULTS[failure]))

    async def hold_next_create(self) -> None:
        async def hold(request: web.Request, forward: Handler) -> web.StreamResponse:
            await self._carry_out(request)
            self.proxy.held.set()
            await self.proxy.released.wait()
            return status(504, "Timeout", "nobody waited")

        self.proxy.fail_next_create(hold)

    async def create_held(self) -> None:
        async with asyncio.timeout(20):
            await self.proxy.held.wait()

    async def add_instance(self, stamp: Stamp | None) -> InstanceRef:
        metadata: dict[str, Any] = {"name": f"foreign-{uuid.uuid4().hex[:8]}"}
        if stamp is not None:
            metadata |= {"labels": marks.labels(stamp), "annotations": marks.full(stamp)}
        # It need not run, and a hundred of them would be a hundred processes.
        spec = {
            "containers": [{"name": "main", "image": "i"}],
            "schedulingGates": [{"name": "a/b"}],
        }
        made = await self.bed.request_json("POST", self.path, {"metadata": metadata, "spec": spec})
        return InstanceRef(str(Reference.of(made)))

    async def run_instance(self, ref: InstanceRef) -> None:
        await self.until(ref, "Running")
        pod = await self.pod(ref)
        if pod["spec"]["containers"][0].get("command", [])[2:3] == [OBEDIENT]:
            listens = "until [ -p orders ]; do sleep 0.02; done"
            assert (await self.run(ref, "main", listens))["status"] == "Success"

    async def end_instance(self, ref: InstanceRef, exit_code: int) -> None:
        await self.order(ref, "main", f"exit {exit_code}")
        await self.until(ref, "Succeeded", "Failed")

    async def garble_instance(self, ref: InstanceRef) -> None:
        self.proxy.garbled.add(Reference.read(ref).uid)

    async def write_log(self, ref: InstanceRef, container: str, text: str) -> None:
        await self.order(ref, container, f"say {text}")

        async def written() -> bool:
            name = Reference.read(ref).name
            return text in str(await self.bed.get_json(f"{self.path}/{name}/log"))

        await eventually(written, "the line in the log", seconds=20, interval=0.02)

    async def advance(self, seconds: float) -> None:
        """Its time is real: what is on its way out is waited for, nothing else changes."""

        async def settled() -> bool:
            listed = await self.bed.get_json(self.path)
            return not any("deletionTimestamp" in pod["metadata"] for pod in listed["items"])

        await eventually(settled, "what is deleted to be gone", seconds=40, interval=0.02)

    async def instance_ids(self) -> Sequence[str]:
        listed = await self.bed.get_json(self.path)
        return [str(Reference.of(pod)) for pod in listed["items"]]

    async def create_requests(self) -> Sequence[Json]:
        """A List for each pod: itself and its copies, which name it as their owner."""
        pods = [body for body in self.proxy.written if body["kind"] == "Pod"]
        return [self._with_copies(pod) for pod in pods]

    async def echo_port(self, ref: InstanceRef) -> int:
        port = free_port()
        await self.order(ref, "main", f"serve {port}")
        return await listening(port)

    async def closed_port(self, ref: InstanceRef) -> int:
        return free_port()

    async def pod(self, ref: InstanceRef) -> dict[str, Any]:
        """A pod as it is over there."""
        found: dict[str, Any] = await self.bed.get_json(f"{self.path}/{Reference.read(ref).name}")
        return found

    async def until(self, ref: InstanceRef, *phases: str) -> None:
        """Wait until the pod is in one of these phases."""

        async def reached() -> bool:
            return (await self.pod(ref))["status"]["phase"] in phases

        await eventually(reached, f"the other pod {' or '.join(phases)}", seconds=40, interval=0.02)

    async def order(self, ref: InstanceRef, container: str, order: str) -> None:
        """Tell an obedient container what to do."""
        ended = await self.run(ref, container, f"cat > orders <<'EOF'\n{order}\nEOF")
        # A container that ends may take along the process that has just told it to.
        assert ended["status"] == "Success" or order.startswith("exit"), ended

    async def run(self, ref: InstanceRef, container: str, script: str) -> dict[str, Any]:
        """Run a script in a container, as an administrator does, without our provider; the Status
        that it ends with."""
        query = [("container", container), ("stdout", "1"), ("stderr", "1")]
        query += [("command", word) for word in ("sh", "-c", script)]
        url = f"{self.bed.url}{self.path}/{Reference.read(ref).name}/exec"
        client = self.bed._client()
        protocols = ["v5.channel.k8s.io"]
        async with client.ws_connect(url, params=query, protocols=protocols) as socket:
            async for message in socket:
                if message.data[:1] == b"\x03":
                    ended: dict[str, Any] = json.loads(message.data[1:])
                    return ended
        return {"status": "Unknown"}

    async def _carry_out(self, request: web.Request) -> None:
        body = await request.json()
        await self.bed.request_json("POST", request.path, body)
        self.proxy.written.append(body)

    async def _first_page(self, request: web.Request, forward: Handler) -> web.StreamResponse:
        headers = {"Authorization": request.headers["Authorization"]}
        url = self.bed.url + str(request.rel_url)
        async with self.proxy.session.get(url, headers=headers) as answer:
            page = await answer.json()
        page["metadata"]["continue"] = "more"
        return web.json_response(page)

    def _with_copies(self, pod: Mapping[str, Any]) -> Json:
        name = pod["metadata"]["name"]
        copies = [_plain(body) for body in self.proxy.written if name in _owners(body)]
        return {"apiVersion": "v1", "kind": "List", "items": [dict(pod), *copies]}


def _owners(body: Mapping[str, Any]) -> list[str]:
    return [owner["name"] for owner in body["metadata"].get("ownerReferences", ())]


def _plain(body: Mapping[str, Any]) -> dict[str, Any]:
    """A copy as a person reads it: without how it was written, and what is in a Secret decoded."""
    metadata = {k: v for k, v in body["metadata"].items() if k != "ownerReferences"}
    plain = {**body, "metadata": metadata}
    for name in ("data", "binaryData"):
        if name in body:
            plain[name] = {k: v for k, v in body[name].items() if k != "$patch"}
    if body["kind"] == "Secret":
        plain["data"] = {k: base64.b64decode(v).decode() for k, v in plain["data"].items()}
    return plain


@asynccontextmanager
async def other_node(bed: ControlPlane) -> AsyncIterator[NodeUnderTest]:
    """A node of the other cluster whose containers are processes of this machine."""
    spec = {
        "taints": [],
        "labels": {"pool": "real"},
        "backends": [{"name": "local", "provider": "process", "config": {"service": "other"}}],
        "tickSeconds": 0.5,
    }
    async with NodeUnderTest(bed, NODE, spec) as node:
        yield node


async def install_rights(bed: ControlPlane, namespace: str) -> str:
    """Apply what ``deploy/`` ships for the other side, in this namespace; a token of it."""
    objects = [each for each in await rendered(bed, DEPLOY) if each["kind"] != "Namespace"]
    text = yaml.safe_dump_all(objects).replace(SHIPPED_NAMESPACE, namespace)
    await bed.apply(text)
    kubeconfig = await bed.service_account_kubeconfig(namespace, "vk-provider")
    user: dict[str, str] = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]
    return user["token"]


@asynccontextmanager
async def connected(
    proxy: ApiProxy, token: str, namespace: str, folder: Path, **config: Any
) -> AsyncIterator[KubernetesProvider]:
    """A provider that reaches the namespace through the proxy, with the shipped rights."""
    file = folder / "token"
    file.write_text(token)
    block: dict[str, Any] = {
        "server": proxy.url,
        "token": {"file": str(file)},
        "namespace": namespace,
        "nodeSelector": {"kubernetes.io/hostname": NODE},
    }
    context = ProviderContext(CLUSTER_ID, NODE_NAME, "other", "config", "tests/1")
    async with factory({**block, **config}, context) as provider:
        yield provider
