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
_GONE_STATES = (7, 8)
"""CLOSE and CLOSE_WAIT, as Linux numbers them."""
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}

Incoming = TypeVar("Incoming", covariant=True)
Outgoing = TypeVar("Outgoing", contravariant=True)


class Wire(Protocol[Incoming, Outgoing]):
    """A connection to the client."""

    async def receive(self) -> Incoming | None:
        """What comes next; None at the end."""

    async def send(self, output: Outgoing) -> None:
        """Send; returns when there is room again. Does nothing once the client is gone."""

    def is_gone(self) -> bool:
        """Whether the client is known to be gone although nothing was read lately."""

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

    def is_gone(self) -> bool:
        """By the state of its connection."""
        return peer_is_gone(self._socket.get_extra_info("socket"))

    async def close(self, code: int) -> None:
        """A close frame; then wait for the client's, so that it reads all that was sent."""
        try:
            with suppress(ConnectionError):
                await self._socket.close(code=code)
        finally:
            # The library keeps what failed, whose traceback keeps the library's objects: they and
            # the connection's buffers would stay until a garbage collection, which is rare.
            if (fault := self._socket.exception()) is not None:
                fault.__traceback__ = None


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

    def is_gone(self) -> bool:
        """See :class:`MessageWire`."""
        return self._messages.is_gone()

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


def peer_is_gone(connection: socket.socket | None) -> bool:
    """What the kernel knows of a connection that nobody reads: a client that hung up, or whose
    machine no longer answers, would otherwise show only behind the bytes that wait."""
    if connection is None or not hasattr(socket, "TCP_INFO"):
        return connection is None
    try:
        state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    except OSError:
        return True
    return state in _GONE_STATES
