"""A proxy in front of a real API server: passes everything on, and fails what it is told to fail.

It also serves metrics.k8s.io from the node's own summary, at once: metrics-server takes half a
minute to have seen a pod. Fed by the tests of the other-cluster backend.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

import aiohttp
from aiohttp import WSMsgType, web

from tests.rig.control_plane import ControlPlane

BUFFER_BYTES = 256 * 1024
_HOP_BY_HOP = {"connection", "content-length", "host", "transfer-encoding", "upgrade"}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Interference = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
Fault = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]


def status(code: int, reason: str, message: str, **headers: str) -> web.Response:
    """A Status, as the API server answers."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return web.json_response(
        {**body, "reason": reason, "message": message}, status=code, headers=headers
    )


def is_create(request: web.Request) -> bool:
    """Whether a pod is to be made."""
    return request.method == "POST" and request.path.endswith("/pods")


def is_list(request: web.Request) -> bool:
    """Whether our pods are listed."""
    listed = request.method == "GET" and request.path.endswith("/pods")
    return listed and "labelSelector" in request.query and "watch" not in request.query


class Kubelet(Protocol):
    """A node that tells what its pods use."""

    @property
    def name(self) -> str:
        """As the API knows it."""

    async def kubelet(self, path: str) -> tuple[int, str]:
        """GET as an administrator: status and text."""


@dataclass
class ApiProxy:
    """One proxy. ``written`` are the bodies of pods and copies that the API server took."""

    bed: ControlPlane
    node: Kubelet | None = None
    url: str = ""
    written: list[dict[str, Any]] = field(default_factory=list)
    interfere: Interference | None = None
    """Answers instead of the API server, where it answers at all."""
    garbled: set[str] = field(default_factory=set)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    _create_faults: list[Fault] = field(default_factory=list)
    _list_faults: list[Fault] = field(default_factory=list)
    _session: aiohttp.ClientSession | None = None

    def fail_next_create(self, fault: Fault) -> None:
        """Let the next POST of a pod be answered by ``fault``."""
        self._create_faults.append(fault)

    def fail_next_list(self, fault: Fault) -> None:
        """Let the next list be answered by ``fault``."""
        self._list_faults.append(fault)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        if self.interfere is not None and (answer := await self.interfere(request)) is not None:
            return answer
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._bridge(request)
        if "/apis/metrics.k8s.io/" in request.path:
            return await self._metrics(request)
        if is_create(request) and self._create_faults:
            return await self._create_faults.pop(0)(request, self.forward)
        if is_list(request) and self._list_faults:
            return await self._list_faults.pop(0)(request, self.forward)
        return await self.forward(request)

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """The API server's own answer."""
        body = await request.read()
        async with self.session.request(
            request.method,
            self.bed.url + str(request.rel_url),
            data=body or None,
            headers=_kept(request.headers),
        ) as answer:
            if answer.status < 300:
                self._note(request, body)
            if is_list(request) and self.garbled:
                return web.json_response(self._garble(await answer.json()))
            response = web.StreamResponse(status=answer.status, headers=_kept(answer.headers))
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    async def _bridge(self, request: web.Request) -> web.StreamResponse:
        protocols = [
            word.strip() for word in request.headers.get("Sec-WebSocket-Protocol", "").split(",")
        ]
        headers = {"Authorization": request.headers["Authorization"]}
        url = self.bed.url + str(request.rel_url)
        try:
            far = await self.session.ws_connect(
                url, protocols=protocols, headers=headers, max_msg_size=0
            )
        except aiohttp.WSServerHandshakeError as refusal:
            return status(refusal.status, "Refused", refusal.message)
        near = web.WebSocketResponse(
            protocols=[far.protocol] if far.protocol else [], max_msg_size=0
        )
        await near.prepare(request)
        pumps = [asyncio.create_task(_pump(near, far)), asyncio.create_task(_pump(far, near))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            await far.close()
            await near.close()
        return near

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        namespace = request.path.split("/")[5]
        selector = request.query.get("labelSelector", "")
        pods = await self.bed.get_json(
            f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}"
        )
        kind = {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1"}
        if self.node is None:
            return status(404, "NotFound", "nobody serves metrics.k8s.io")
        _, summary = await self.node.kubelet("/stats/summary?only_cpu_and_memory=true")
        usage = {each["podRef"]["uid"]: each for each in json.loads(summary)["pods"]}
        items = [_measured(pod, usage) for pod in pods["items"]]
        return web.json_response({**kind, "items": [item for item in items if item]})

    @property
    def session(self) -> aiohttp.ClientSession:
        """Towards the API server; it brings no identity of its own."""
        assert self._session is not None
        return self._session

    def _note(self, request: web.Request, body: bytes) -> None:
        parts = request.path.split("/")
        kinds = ("pods", "configmaps", "secrets")
        is_copy = request.method == "PATCH" and len(parts) == 7 and parts[5] in kinds[1:]
        if (request.method == "POST" and parts[-1] in kinds) or is_copy:
            self.written.append(json.loads(body))

    def _garble(self, listed: dict[str, Any]) -> dict[str, Any]:
        for pod in listed["items"]:
            if pod["metadata"]["uid"] in self.garbled:
                pod["status"]["phase"] = "Hibernating"
        return listed


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _HOP_BY_HOP}


def _measured(pod: Mapping[str, Any], usage: Mapping[str, Any]) -> dict[str, Any] | None:
    found = usage.get(pod["metadata"]["uid"])
    if found is None:
        return None
    containers = [
        {
            "name": each["name"],
            "usage": {
                "cpu": f"{each.get('cpu', {}).get('usageNanoCores', 0)}n",
                "memory": str(each.get("memory", {}).get("workingSetBytes", 0)),
            },
        }
        for each in found["containers"]
    ]
    names = {key: pod["metadata"][key] for key in ("name", "namespace", "labels")}
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return {"metadata": names, "timestamp": now, "window": "10s", "containers": containers}


async def _pump(
    source: web.WebSocketResponse | aiohttp.ClientWebSocketResponse,
    sink: web.WebSocketResponse | aiohttp.ClientWebSocketResponse,
) -> None:
    async for message in source:
        if message.type is WSMsgType.BINARY:
            await sink.send_bytes(message.data)
        elif message.type is WSMsgType.TEXT:
            await sink.send_str(message.data)
    await sink.close(code=source.close_code or 1000)


def _narrow_socket(address: tuple[Any, ...]) -> socket.socket:
    """One more hop must not be one more reservoir."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    return made


@asynccontextmanager
async def api_proxy(bed: ControlPlane, node: Kubelet | None = None) -> AsyncIterator[ApiProxy]:
    """A proxy that listens on the loopback, in plain HTTP."""
    proxy = ApiProxy(bed, node)
    application = web.Application(client_max_size=1 << 24)
    application.router.add_route("*", "/{path:.*}", proxy.answer)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=1.0)
    trust = ssl.create_default_context(cafile=str(bed.ca_file))
    connector = aiohttp.TCPConnector(ssl=trust, limit=0, socket_factory=_narrow_socket)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
        proxy._session = session
        await runner.setup()
        try:
            listener = socket.create_server(("127.0.0.1", 0))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
            site = web.SockSite(runner, listener)
            await site.start()
            (address,) = runner.addresses
            proxy.url = f"http://127.0.0.1:{address[1]}"
            yield proxy
        finally:
            proxy.released.set()
            await runner.cleanup()
