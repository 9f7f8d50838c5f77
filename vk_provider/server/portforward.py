"""``/portForward/{namespace}/{pod}[/{uid}]``: what ``kubectl port-forward`` uses.

Fed by the lookup; feeds a provider's ``open_port`` through :mod:`.portforward_session`.
"""

from __future__ import annotations

from aiohttp import web

from vk_provider.log import scrub
from vk_provider.pods.types import Json
from vk_provider.provider import SupportsPortForward
from vk_provider.server.forwarding import Target
from vk_provider.server.limits import Endpoint
from vk_provider.server.portforward_session import ForwardSession
from vk_provider.server.streaming import Streams, agree
from vk_provider.server.targets import Instance, StreamRefusedError, find_pod, running_instance
from vk_provider.server.upgrade import Hijack, Upgraded
from vk_provider.server.wires import MessageWire, TunnelWire, accept_websocket
from vk_provider.wire.negotiation import (
    SPDY_FORWARD_PROTOCOLS,
    TUNNEL,
    WEBSOCKET_FORWARD_PROTOCOLS,
    Agreed,
)
from vk_provider.wire.portforward import forward_error, parse_ports
from vk_provider.wire.portforward_spdy import SpdyPortForward
from vk_provider.wire.portforward_websocket import WebSocketPortForward


def port_forward_endpoint(streams: Streams) -> Endpoint:
    """The endpoint of port-forward."""

    async def answer(request: web.Request) -> web.StreamResponse:
        target = _target(running_instance(find_pod(streams.lookup, request)))
        agreed, over_websocket = agree(request, SPDY_FORWARD_PROTOCOLS, WEBSOCKET_FORWARD_PROTOCOLS)
        if over_websocket:
            return await _over_websocket(request, agreed, target, streams)
        async with Hijack(request, agreed.headers) as connection:
            await ForwardSession(SpdyPortForward(), connection, target, streams.times).run()
        return Upgraded()

    return streams.endpoint(answer)


async def _over_websocket(
    request: web.Request, agreed: Agreed, target: Target, streams: Streams
) -> web.StreamResponse:
    if agreed.protocol == TUNNEL:
        websocket = await accept_websocket(request, agreed.protocol)
        tunnel = TunnelWire(websocket)
        await ForwardSession(SpdyPortForward(), tunnel, target, streams.times).run()
        return websocket
    ports = parse_ports(request.query.getall("port", []))
    machine = WebSocketPortForward(agreed.protocol, ports)
    websocket = await accept_websocket(request, agreed.protocol)
    await ForwardSession(machine, MessageWire(websocket), target, streams.times).run()
    return websocket


def _target(instance: Instance) -> Target:
    provider, metadata = instance.provider, instance.pod.get("metadata") or {}
    if not isinstance(provider, SupportsPortForward):
        raise StreamRefusedError(501, "this pod's backend can't forward ports")
    name, uid = f"{metadata.get('name')}_{metadata.get('namespace')}", str(metadata.get("uid"))
    return Target(
        open=lambda port: provider.open_port(instance.ref, port),
        refusal=lambda port: port_refusal(instance.pod, port),
        error=lambda port, reason: forward_error(port, name, uid, scrub(reason)),
    )


def port_refusal(pod: Json, port: int) -> str | None:
    """Why a port can't be forwarded: the pod says that it does not speak TCP."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    protocols = {
        entry.get("protocol") or "TCP"
        for container in containers
        for entry in container.get("ports") or ()
        if entry.get("containerPort") == port
    }
    if not protocols or "TCP" in protocols:
        return None
    return f"{min(protocols)} protocol is not supported for {port}"
