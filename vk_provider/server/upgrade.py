"""A connection taken over from aiohttp: after the 101 its bytes are SPDY, not HTTP.

aiohttp has no public way to do it, so everything that rests on its insides stands in this file:
our protocol replaces aiohttp's on the transport, and at the end aiohttp's is told that the
connection was lost, so that it lets go of what it counted. Works on plain and TLS transports, of
asyncio and of uvloop. Fed by the streaming endpoints; a :class:`.wires.Wire` of bytes.
"""

from __future__ import annotations

import asyncio
from collections import deque

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from vk_provider.server.wires import notice_dead_peer, peer_is_gone
from vk_provider.wire.negotiation import HeaderLines

_READ_AHEAD_BYTES = 128 * 1024
_WRITE_BUFFER_BYTES = 256 * 1024
_GOODBYE_SECONDS = 5.0


class Upgraded(web.StreamResponse):
    """What an endpoint returns after it has spoken for itself: aiohttp writes nothing."""

    def __init__(self) -> None:
        super().__init__(status=101)
        self.force_close()

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Nothing: the head went out long ago."""
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing: the connection is over."""


class HijackedConnection(asyncio.Protocol):
    """The bytes of one connection, with back-pressure in both directions."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._reads = True
        self._ended = False
        self._came = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._lost = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        """Keep it for ``receive``; more than READ_AHEAD stays in the kernel."""
        self._chunks.append(data)
        self._held += len(data)
        self._came.set()
        if self._reads and self._held >= _READ_AHEAD_BYTES:
            self._reads = False
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """The client is done; False closes the transport once all is written."""
        self._end()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing can be read or written any more."""
        self._end()
        self._lost.set()
        self._room.set()

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._room.clear()

    def resume_writing(self) -> None:
        """It caught up."""
        self._room.set()

    async def receive(self) -> bytes | None:
        """The next bytes as they came; None at the end."""
        while not self._chunks:
            if self._ended:
                return None
            self._came.clear()
            await self._came.wait()
        chunk = self._chunks.popleft()
        self._held -= len(chunk)
        if not self._reads and self._held < _READ_AHEAD_BYTES and not self._ended:
            self._reads = True
            self._transport.resume_reading()
        return chunk

    async def send(self, output: bytes) -> None:
        """Write; returns when there is room again. Without a client it does nothing."""
        if self._lost.is_set():
            return
        self._transport.write(output)
        await self._room.wait()

    def is_gone(self) -> bool:
        """Also while its bytes are left in the kernel."""
        return self._lost.is_set() or peer_is_gone(self._transport.get_extra_info("socket"))

    async def close(self, code: int) -> None:
        """Close when all is written, or without it if the client does not take it."""
        self._transport.close()
        try:
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self._lost.wait()
        except TimeoutError:
            self._transport.abort()

    def _end(self) -> None:
        self._ended = True
        self._came.set()


class Hijack:
    """The time in which a connection is ours, as an async context manager.

    Raises:
        ConnectionResetError: the client is gone already.
    """

    def __init__(self, request: web.Request, head: HeaderLines) -> None:
        self._request = request
        self._head = head

    async def __aenter__(self) -> HijackedConnection:
        protocol, transport = self._request.protocol, self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        # aiohttp's own timers would end the connection as an idle one.
        protocol.keep_alive(False)
        notice_dead_peer(transport)
        connection = HijackedConnection(transport)
        transport.set_protocol(connection)
        transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)
        transport.write(_response_head(self._head))
        transport.resume_reading()
        return connection

    async def __aexit__(self, *exc: object) -> None:
        # The last act: aiohttp cancels the task that runs us.
        self._request.protocol.connection_lost(None)


def _response_head(lines: HeaderLines) -> bytes:
    head = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in lines)]
    return "\r\n".join([*head, "", ""]).encode("latin-1")
