"""What carries a stream: the bytes of a connection, or the messages of a WebSocket.

Fed by aiohttp's WebSocket; feeds :mod:`.conversation`. The third wire is the hijacked connection
of :mod:`.upgrade`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from aiohttp import WSMsgType, web

from vk_provider.wire.channels import Message

MESSAGE_BYTES = 8 * 1024 * 1024
"""A client may send no larger message: the library holds a whole one at a time."""
GOODBYE_SECONDS = 30.0
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}

Incoming = TypeVar("Incoming", covariant=True)
Outgoing = TypeVar("Outgoing", contravariant=True)


class Wire(Protocol[Incoming, Outgoing]):
    """A connection to the client."""

    async def receive(self) -> Incoming | None:
        """What comes next; None at the end."""

    async def send(self, output: Outgoing) -> None:
        """Send; returns when there is room again. Does nothing once the client is gone."""

    async def close(self, code: int) -> None:
        """Say goodbye (with a WebSocket's close code), then end the connection."""


class MessageWire:
    """The messages of a WebSocket."""

    def __init__(self, websocket: web.WebSocketResponse) -> None:
        self._socket = websocket

    async def receive(self) -> Message | None:
        """The next message. Pings were answered on the way."""
        message = await self._socket.receive()
        if message.type is WSMsgType.TEXT or message.type is WSMsgType.BINARY:
            content: Message = message.data
            return content
        return None

    async def send(self, output: Sequence[Message]) -> None:
        """One message after the other."""
        with suppress(ConnectionError):
            for message in output:
                if isinstance(message, str):
                    await self._socket.send_str(message)
                else:
                    await self._socket.send_bytes(message)

    async def close(self, code: int) -> None:
        """A close frame; then wait for the client's, so that it reads all that was sent."""
        with suppress(ConnectionError):
            await self._socket.close(code=code)


class TunnelWire:
    """A stream of bytes inside the binary messages of a WebSocket; their borders mean nothing."""

    def __init__(self, websocket: web.WebSocketResponse) -> None:
        self._messages = MessageWire(websocket)

    async def receive(self) -> bytes | None:
        """The next bytes. A text message is none of this protocol: it ends it."""
        message = await self._messages.receive()
        return message if isinstance(message, bytes) else None

    async def send(self, output: bytes) -> None:
        """As one message."""
        await self._messages.send([output])

    async def close(self, code: int) -> None:
        """See :class:`MessageWire`."""
        await self._messages.close(code)


async def accept_websocket(request: web.Request, protocol: str) -> web.WebSocketResponse:
    """Answer the upgrade with the protocol that was agreed ("" for none).

    Raises:
        web.HTTPBadRequest: the handshake is none.
    """
    accepted = web.WebSocketResponse(
        protocols=(protocol,) if protocol else (),
        compress=False,
        max_msg_size=MESSAGE_BYTES,
        timeout=GOODBYE_SECONDS,
        heartbeat=None,
    )
    await accepted.prepare(request)
    if request.transport is not None:
        notice_dead_peer(request.transport)
    return accepted


def notice_dead_peer(transport: asyncio.Transport) -> None:
    """Let the kernel find out within a minute that a silent client's machine is gone. (Pings of
    ours would end clients that only answer while they read, and while we read.)"""
    connection = transport.get_extra_info("socket")
    for name, value in _KEEP_ALIVE.items():
        if connection is not None and hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
