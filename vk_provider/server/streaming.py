"""What every streaming endpoint does around its stream: refuse as a kubelet, and end with us.

Fed by :mod:`.exec`, :mod:`.attach` and :mod:`.portforward`; feeds aiohttp.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from vk_provider.log import scrub
from vk_provider.server.limits import Endpoint
from vk_provider.server.lookup import PodLookup
from vk_provider.server.memory import Trimmer
from vk_provider.server.remote_command import RemoteSession, StreamTimes, Work
from vk_provider.server.targets import StreamRefusedError
from vk_provider.server.upgrade import Hijack, Upgraded
from vk_provider.server.wires import MessageWire, accept_websocket
from vk_provider.wire.channels import WebSocketRemoteCommand
from vk_provider.wire.negotiation import (
    SPDY_COMMAND_PROTOCOLS,
    WEBSOCKET_COMMAND_PROTOCOLS,
    Agreed,
    HeaderLines,
    Refusal,
    is_websocket,
    negotiate_spdy,
    negotiate_websocket,
)
from vk_provider.wire.portforward import PortQueryError
from vk_provider.wire.remote_command import StreamOptions, StreamQueryError
from vk_provider.wire.remote_command_spdy import SpdyRemoteCommand


@dataclass(slots=True)
class Streams:
    """What the streaming endpoints share, and the streams that are open now."""

    lookup: PodLookup
    times: StreamTimes = field(default_factory=StreamTimes)
    trimmer: Trimmer = field(default_factory=Trimmer)
    _open: set[asyncio.Task[Any]] = field(default_factory=set)

    def endpoint(self, answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Endpoint:
        """An endpoint whose refusals are texts, and which :meth:`close` ends."""

        async def serve(request: web.Request) -> web.StreamResponse:
            task = asyncio.current_task()
            assert task is not None
            self._open.add(task)
            try:
                return await answer(request)
            except (StreamQueryError, PortQueryError) as error:
                return web.Response(status=400, text=str(error))
            except StreamRefusedError as refusal:
                return web.Response(status=refusal.status, text=no_mapping(scrub(str(refusal))))
            except ProtocolRefusedError as refused:
                return refused.response()
            finally:
                self._open.discard(task)
                self.trimmer.soon()

        return serve

    async def close(self, seconds: float) -> None:
        """End every stream; each tells its client why."""
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(set(self._open), timeout=seconds)
        self.trimmer.close()


def no_mapping(text: str) -> str:
    """The same sentence without anything that YAML takes for a mapping. An API server that
    translates streams tries to read a refusal as a Status, also in YAML; a sentence with a colon
    becomes an empty one, and kubectl prints "unknown error"."""
    return text.replace(": ", " - ")


class ProtocolRefusedError(Exception):
    """No protocol could be agreed on; carries the answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self._refusal = refusal

    def response(self) -> web.Response:
        """The answer, with its headers."""
        response = web.Response(status=self._refusal.status, text=self._refusal.body)
        for name, value in self._refusal.headers:
            response.headers.add(name, value)
        return response


def header_lines(request: web.Request) -> HeaderLines:
    """Every header line, repeated ones repeated."""
    return list(request.headers.items())


def agree(
    request: web.Request, spdy: Sequence[str], websocket: Sequence[str]
) -> tuple[Agreed, bool]:
    """The protocol, and whether it is one over WebSocket. Raises ProtocolRefusedError."""
    lines = header_lines(request)
    over_websocket = is_websocket(lines)
    agreed = (
        negotiate_websocket(lines, websocket) if over_websocket else negotiate_spdy(lines, spdy)
    )
    if isinstance(agreed, Refusal):
        raise ProtocolRefusedError(agreed)
    return agreed, over_websocket


async def serve_command(
    request: web.Request, options: StreamOptions, work: Work, times: StreamTimes
) -> web.StreamResponse:
    """Upgrade, and run one command over whatever was agreed. Raises ProtocolRefusedError."""
    agreed, over_websocket = agree(request, SPDY_COMMAND_PROTOCOLS, WEBSOCKET_COMMAND_PROTOCOLS)
    if over_websocket:
        websocket = await accept_websocket(request, agreed.protocol)
        messages = WebSocketRemoteCommand(agreed.protocol, options)
        await RemoteSession(messages, MessageWire(websocket), times).run(work)
        return websocket
    async with Hijack(request, agreed.headers) as connection:
        command = SpdyRemoteCommand(agreed.protocol, options)
        await RemoteSession(command, connection, times).run(work)
    return Upgraded()
