"""What only this provider does, on a real control plane: copies, adoption, undoing, rotation."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from vk_provider_kubernetes.provider import KubernetesProvider, factory
from vk_provider_kubernetes.references import Reference
from vk_provider_kubernetes.translate import GATE, translate
from vk_provider_kubernetes.tunnel import DATA, ERROR, PROTOCOL

from tests.integration.kubernetes.other_cluster import OtherCluster, connected, install_rights
from tests.integration.kubernetes.proxy import ApiProxy, api_proxy, status
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually
from vk_provider.faults import (
    ConfigError,
    DeniedError,
    InstanceNotFoundError,
    OutcomeUnknownError,
    RejectedError,
    UnavailableError,
)
from vk_provider.pods.references import CONFIG_MAP, SECRET, ObjectKey
from vk_provider.pods.types import (
    EndCause,
    InstancePhase,
    InstanceRef,
    LogOptions,
    ResolvedPod,
)
from vk_provider.provider import IMPLICIT_OFFER, InstanceEvent, ProviderContext
from vk_provider.streams import ExecRequest
from vk_provider.testing.builders import CLUSTER_ID, NODE_NAME, make_container, make_resolved_pod
from vk_provider.testing.contract_client import ScriptedClient
from vk_provider.wire.spdy_frames import FrameType, control_frame, data_header, one_word

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONF, LOGIN = ObjectKey(CONFIG_MAP, "default", "conf"), ObjectKey(SECRET, "default", "login")


@dataclass
class Bench:
    """A provider and the namespace behind it."""

    provider: KubernetesProvider
    other: OtherCluster
    proxy: ApiProxy
    folder: Path

    async def create(self, pod: ResolvedPod) -> Reference:
        """Make an instance."""
        return Reference.read(await self.provider.create_instance(pod, IMPLICIT_OFFER))

    async def objects(self, kind: str) -> list[dict[str, Any]]:
        """The copies of a kind."""
        path = f"/api/v1/namespaces/{self.other.namespace}/{kind}"
        found = (await self.other.bed.get_json(path))["items"]
        return [each for each in found if "vk-provider.dev/home-node" in _labels(each)]

    async def say(self, about: Reference, reason: str, message: str) -> None:
        """An Event of the other cluster about an instance."""
        involved = {"kind": "Pod", "namespace": about.namespace, "name": about.name}
        event = {
            "metadata": {"generateName": "said-"},
            "involvedObject": {**involved, "uid": about.uid},
            "type": "Warning",
            "reason": reason,
            "message": message,
        }
        path = f"/api/v1/namespaces/{about.namespace}/events"
        await self.other.bed.request_json("POST", path, event)


def _labels(each: dict[str, Any]) -> dict[str, str]:
    return each["metadata"].get("labels") or {}


def referring(name: str = "app-1", **data: str) -> ResolvedPod:
    """A pod that refers to a ConfigMap with this content, and to one key of a Secret."""
    password = base64.b64encode(b"x").decode()
    objects = {CONF: {"data": data or {"a": "1"}}, LOGIN: {"data": {"password": password}}}
    reference = {"secretKeyRef": {"name": "login", "key": "password"}}
    container = make_container(
        env=[{"name": "P", "valueFrom": reference}], envFrom=[{"configMapRef": {"name": "conf"}}]
    )
    return make_resolved_pod(name, objects=objects, containers=[container])


@pytest_asyncio.fixture(loop_scope="session")
async def bench(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> AsyncIterator[Bench]:
    """With the shipped rights; nothing runs there, since there is no node."""
    token = await install_rights(control_plane, namespace)
    async with (
        api_proxy(control_plane) as proxy,
        connected(proxy, token, namespace, tmp_path) as provider,
    ):
        yield Bench(provider, OtherCluster(control_plane, proxy, namespace), proxy, tmp_path)


async def test_pods_share_copies_and_own_them(bench: Bench) -> None:
    """The gate is open once they are there."""
    first, second = await bench.create(referring("a")), await bench.create(referring("b"))

    (conf,) = await bench.objects("configmaps")
    owners = {owner["uid"] for owner in conf["metadata"]["ownerReferences"]}
    assert owners == {first.uid, second.uid}
    (login,) = await bench.objects("secrets")
    assert set(login["data"]) == {"password"}
    pod = await bench.other.bed.get_json(f"{bench.other.path}/{first.name}")
    assert "schedulingGates" not in pod["spec"]


async def test_the_last_owner_takes_the_copy_along(bench: Bench) -> None:
    """Collected over there, by reference."""
    for name in ("a", "b"):
        reference = await bench.create(referring(name))
        await bench.provider.delete_instance(InstanceRef(str(reference)), 0)

    async def collected() -> bool:
        return not await bench.objects("configmaps")

    await eventually(collected, "the end of the copies", seconds=40)


async def test_a_second_create_of_a_pod_adopts_the_first(bench: Bench) -> None:
    """Names are the pod's; nothing is made twice."""
    pod = referring()

    assert await bench.create(pod) == await bench.create(pod)
    assert len(await bench.provider.list_instances()) == 1


async def test_a_pod_of_somebody_else_is_not_adopted(bench: Bench) -> None:
    """Whatever it is called."""
    pod = make_resolved_pod()
    reference = await bench.create(pod)
    path = f"{bench.other.path}/{reference.name}"
    marks = {"annotations": {"vk-provider.dev/home-node": "another"}}
    await bench.other.bed.request_json(
        "PATCH", path, {"metadata": marks}, content_type="application/merge-patch+json"
    )

    with pytest.raises(UnavailableError, match="is not ours"):
        await bench.create(pod)


async def test_a_refresh_follows_home(bench: Bench) -> None:
    """Old keys go, new ones come; labels, too."""
    reference = await bench.create(referring(a="1", b="2"))

    changed = referring(a="3")
    metadata = {**changed.pod["metadata"], "labels": {"tier": "gold"}}
    await bench.provider.refresh_instance(
        InstanceRef(str(reference)), replace(changed, pod={**changed.pod, "metadata": metadata})
    )

    (conf,) = await bench.objects("configmaps")
    assert conf["data"] == {"a": "3"}
    pod = await bench.other.bed.get_json(f"{bench.other.path}/{reference.name}")
    assert pod["metadata"]["labels"]["tier"] == "gold"


async def test_what_went_at_home_loses_its_content(bench: Bench) -> None:
    """Of optional references: their files go. A login can't be empty, and stays."""
    pod = referring(a="1")
    login = ObjectKey(SECRET, "default", "pull")
    auths = base64.b64encode(b'{"auths": {}}').decode()
    typed = {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": auths}}
    spec = {**pod.pod["spec"], "imagePullSecrets": [{"name": "pull"}]}
    pod = replace(pod, pod={**pod.pod, "spec": spec}, objects={**pod.objects, login: typed})
    ref = InstanceRef(str(await bench.create(pod)))

    await bench.provider.refresh_instance(ref, replace(pod, objects={}))

    (conf,) = await bench.objects("configmaps")
    assert "data" not in conf
    contents = [each.get("data") for each in await bench.objects("secrets")]
    assert sorted(contents, key=bool) == [None, typed["data"]]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (status(403, "Forbidden", 'User "x" cannot create resource "secrets"'), DeniedError),
        (status(504, "Timeout", "no answer in time"), UnavailableError),
    ],
)
async def test_a_pod_whose_copies_can_not_be_made_is_taken_back(
    bench: Bench, answer: web.Response, fault: type[Exception]
) -> None:
    """Nothing of it is left, and the fault says so."""
    bench.proxy.interfere = always("PATCH", "/secrets/", answer)

    with pytest.raises(fault):
        await bench.create(referring())

    bench.proxy.interfere = None
    assert list(await bench.provider.list_instances()) == []


async def test_a_pod_that_can_not_be_taken_back_either_is_in_doubt(bench: Bench) -> None:
    """Lists will tell; behind its gate it runs nothing."""
    refusal = status(403, "Forbidden", "no")
    bench.proxy.interfere = always("", "/secrets/", refusal, also=("DELETE", "/pods/"))

    with pytest.raises(OutcomeUnknownError, match="could not be taken back"):
        await bench.create(referring())

    bench.proxy.interfere = None
    (seen,) = await bench.provider.list_instances()
    assert seen.phase is InstancePhase.STARTING
    pod = await bench.other.pod(seen.ref)
    assert pod["spec"]["schedulingGates"] == [{"name": GATE}]


def always(
    method: str, part: str, answer: web.Response, also: tuple[str, str] = ("NONE", "-")
) -> Any:
    """Answers every request of this kind so."""

    async def interfere(request: web.Request) -> web.StreamResponse | None:
        for verb, piece in ((method, part), also):
            if request.method.startswith(verb) and piece in request.path:
                assert isinstance(answer.body, bytes)
                return web.Response(
                    status=answer.status, body=answer.body, content_type="application/json"
                )
        return None

    return interfere


async def test_removal_by_somebody_else_is_pushed(bench: Bench) -> None:
    """As a loss, at once."""
    seen: asyncio.Queue[Any] = asyncio.Queue()

    async def watch() -> None:
        async for each in bench.provider.watch_instances():
            seen.put_nowait(each)

    watching = asyncio.create_task(watch())
    try:
        reference = await bench.create(make_resolved_pod())
        await bench.other.bed.request_json("DELETE", f"{bench.other.path}/{reference.name}")
        async with asyncio.timeout(20):
            while (last := await seen.get()).phase is not InstancePhase.ENDED:
                pass
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    assert last.ended_by is EndCause.LOST


async def test_what_the_other_cluster_says_of_an_instance_is_told(bench: Bench) -> None:
    """Of this one, in its words, from the moment on when somebody listens."""
    told: set[InstanceEvent] = set()

    async def listen() -> None:
        async for each in bench.provider.watch_events():
            told.add(each)

    reference = await bench.create(make_resolved_pod())
    ref = InstanceRef(str(reference))
    # Its scheduler has something to say as well.
    wanted = InstanceEvent(ref, "Warning", "BackOff", "restarting failed container")
    listening = asyncio.create_task(listen())
    try:

        async def arrived() -> bool:
            await bench.say(reference, "BackOff", "restarting failed container")
            return wanted in told

        await eventually(arrived, "an event of the instance", seconds=20, interval=0.2)
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)

    assert {each.ref for each in told} == {ref}


async def test_events_that_may_not_be_read_are_a_refusal(bench: Bench) -> None:
    """An older Role lacks the right; the core says so once and tries ever more rarely."""
    refusal = status(403, "Forbidden", 'User "x" cannot list resource "events"')
    bench.proxy.interfere = always("GET", "/events", refusal)
    with pytest.raises(DeniedError):
        await anext(aiter(bench.provider.watch_events()))


async def test_a_token_that_rotates_is_read_again(bench: Bench) -> None:
    """After a refusal, without a restart."""
    file = bench.folder / "token"
    good = file.read_text()
    file.write_text("stale")
    block = {
        "server": bench.proxy.url,
        "token": {"file": str(file)},
        "namespace": bench.other.namespace,
    }
    context = ProviderContext(CLUSTER_ID, NODE_NAME, "other", "config", "tests/1")
    async with factory(block, context) as provider:
        with pytest.raises(DeniedError):
            await provider.list_instances()
        file.write_text(good)
        identity = provider._cluster.upstream._identity
        identity._refresh_pause_seconds = 0.0

        assert list(await provider.list_instances()) == []


async def test_a_kubeconfig_is_enough(bench: Bench) -> None:
    """As everywhere."""
    kubeconfig = await bench.other.bed.service_account_kubeconfig(
        bench.other.namespace, "vk-provider"
    )
    block = {"kubeconfig": str(kubeconfig), "namespace": bench.other.namespace}
    context = ProviderContext(CLUSTER_ID, NODE_NAME, "other", "config", "tests/1")

    async with factory(block, context) as provider:
        assert list(await provider.list_instances()) == []
        assert (await provider.capacity()).resources == {}


@pytest.mark.parametrize("missing", ["token", "ca"])
async def test_what_can_not_be_read_is_told(tmp_path: Path, missing: str) -> None:
    """With its path."""
    token = tmp_path / "token"
    if missing != "token":
        token.write_text("x")
    block = {
        "server": "https://127.0.0.1:1",
        "token": {"file": str(token)},
        "certificateAuthority": str(tmp_path / "ca"),
    }
    context = ProviderContext(CLUSTER_ID, NODE_NAME, "other", "config", "tests/1")

    with pytest.raises((ConfigError, DeniedError), match=missing):
        await factory(block, context).__aenter__()


async def test_capacity_is_what_the_nodes_have_left(bench: Bench, tmp_path: Path) -> None:
    """It takes rights on all of the cluster."""
    bed = bench.other.bed
    block = {"kubeconfig": str(bed.kubeconfig), "capacity": "derived"}
    context = ProviderContext(CLUSTER_ID, NODE_NAME, "other", "config", "tests/1")

    async with factory(block, context) as provider:
        assert all((await provider.capacity()).resources.values())


async def test_nobody_serves_metrics(bench: Bench) -> None:
    """Then nothing is told."""
    await bench.create(make_resolved_pod())

    assert await bench.provider.read_stats() == ()


async def test_another_instance_of_the_same_name_is_not_this_one(bench: Bench) -> None:
    """The UID decides; its delete touches nobody."""
    pod = make_resolved_pod()
    reference = await bench.create(pod)
    old = InstanceRef(str(replace(reference, uid="0b5c1d1e-5d0a-4f6e-9a53-7f8f3ad2c001")))

    await bench.provider.delete_instance(old, 0)

    assert len(await bench.provider.list_instances()) == 1
    with pytest.raises(InstanceNotFoundError):
        await bench.provider.open_port(old, 80)


@pytest.mark.parametrize(
    ("code", "fault"),
    [(404, InstanceNotFoundError), (403, DeniedError), (401, DeniedError), (500, UnavailableError)],
)
async def test_a_stream_that_is_refused_says_why(
    bench: Bench, code: int, fault: type[Exception]
) -> None:
    """The class decides what the client of the kubelet port reads."""
    reference = await bench.create(make_resolved_pod())
    bench.proxy.interfere = always("GET", "/exec", status(code, "Reason", "words"))

    with pytest.raises(fault):
        await bench.provider.exec(
            InstanceRef(str(reference)), ExecRequest("main", ("true",)), ScriptedClient()
        )


@pytest.mark.parametrize(
    ("code", "fault"),
    [(404, InstanceNotFoundError), (401, DeniedError), (503, UnavailableError)],
)
async def test_a_log_that_is_refused_says_why(
    bench: Bench, code: int, fault: type[Exception]
) -> None:
    """In the other API server's words."""
    reference = await bench.create(make_resolved_pod())
    bench.proxy.interfere = always("GET", "/log", status(code, "Reason", "its words"))

    with pytest.raises(fault, match="its words"):
        async for _ in bench.provider.read_logs(InstanceRef(str(reference)), "main", LogOptions()):
            pass


async def test_streams_to_nobody_are_unavailable(tmp_path: Path) -> None:
    """Nobody listens there."""
    (tmp_path / "token").write_text("x")
    block = {"server": "http://127.0.0.1:1", "token": {"file": str(tmp_path / "token")}}
    context = ProviderContext(CLUSTER_ID, NODE_NAME, "other", "config", "tests/1")
    async with factory(block, context) as provider:
        with pytest.raises(UnavailableError):
            async for _ in provider.read_logs(InstanceRef("a/b/c"), "main", LogOptions()):
                pass
        with pytest.raises(UnavailableError):
            async with provider._cluster.upstream.websocket("/x", [], ["p"]):
                pass


async def test_a_pod_without_a_node_has_no_port_to_connect_to(bench: Bench) -> None:
    """The other API server refuses."""
    reference = await bench.create(make_resolved_pod())

    with pytest.raises(UnavailableError):
        await bench.provider.open_port(InstanceRef(str(reference)), 80)


async def test_a_field_that_the_other_api_does_not_know_is_refused_by_its_name(
    bench: Bench,
) -> None:
    """An older one would leave it out, and run something else."""
    pod = make_resolved_pod()
    body = dict(translate(pod, bench.provider._config).body)
    body["spec"] = {**body["spec"], "fieldOfTheFuture": True}

    with pytest.raises(RejectedError, match="fieldOfTheFuture"):
        await bench.provider._cluster.writes.create_pod(body)


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_port_that_ends_before_it_says_why_is_unavailable(
    bench: Bench, is_late: bool
) -> None:
    """containerd closes the data of a port that nobody listens on first, and explains then; from
    far away that comes when the connection has been taken for good."""
    reference = await bench.create(make_resolved_pod())
    taken = [control_frame(FrameType.SYN_REPLY, one_word(each)) for each in (ERROR, DATA)]
    words = b"connection refused"

    async def refuse(request: web.Request) -> web.StreamResponse | None:
        if not request.path.endswith("/portforward"):
            return None
        socket = web.WebSocketResponse(protocols=[PROTOCOL])
        await socket.prepare(request)
        await socket.receive()
        await socket.send_bytes(b"".join(taken))
        if is_late:
            await socket.receive()
        await socket.send_bytes(data_header(DATA, 0, fin=True))
        await socket.send_bytes(data_header(ERROR, len(words), fin=True) + words)
        await socket.receive()
        return socket

    async def talk() -> None:
        connection = await bench.provider.open_port(InstanceRef(str(reference)), 7001)
        try:
            await connection.write(b"hello")
            await connection.read()
        finally:
            await connection.close()

    bench.proxy.interfere = refuse

    with pytest.raises(UnavailableError, match="refused"):
        await talk()
