"""Connections to ports of instances, through the other API server.

Fed by ``provider``; speaks the protocol of :mod:`.tunnel` through ``upstream``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress

import aiohttp

from vk_provider.faults import UnavailableError
from vk_provider.streams import CHUNK_BYTES
from vk_provider_kubernetes.tunnel import PROTOCOL, Tunnel
from vk_provider_kubernetes.upstream import Upstream

SETTLE_SECONDS = 0.1
"""The far side says nothing when somebody listens; when nobody does, it says so at once. This long
a new connection waits for bad news, unless the port speaks first."""
OPEN_SECONDS = 15.0


class RemotePort:
    """One connection; implements ``PortConnection``."""

    def __init__(
        self, socket: aiohttp.ClientWebSocketResponse, tunnel: Tunnel, stack: AsyncExitStack
    ) -> None:
        self._socket = socket
        self._tunnel = tunnel
        self._stack = stack
        self._reading = asyncio.Lock()
        self._closed = False

    async def read(self) -> bytes:
        """Up to CHUNK_BYTES; empty at the end. Raises UnavailableError if nobody listens."""
        async with self._reading:
            while not self._tunnel.received and not self._tunnel.ended:
                await self._receive()
            await self._settled(lambda: self._tunnel.owes_reason)
        if not self._tunnel.received and self._tunnel.fault and not self._closed:
            raise UnavailableError(self._tunnel.fault)
        chunk = bytes(self._tunnel.received[:CHUNK_BYTES])
        del self._tunnel.received[: len(chunk)]
        return chunk

    async def write(self, chunk: bytes) -> None:
        """Send; returns when there is room again."""
        for frame in self._tunnel.data(chunk):
            await self._send(frame)

    async def write_eof(self) -> None:
        """Close our direction; reading goes on."""
        await self._send(self._tunnel.end())

    async def close(self) -> None:
        """End it. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._tunnel.lost("it was closed")
        with suppress(UnavailableError):
            await self._send(self._tunnel.bye())
        await self._stack.aclose()

    async def settle(self) -> None:
        """Wait until the far side has taken the connection. Raises UnavailableError if it can't."""
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                while not self._tunnel.is_open and not self._tunnel.ended:
                    await self._receive()
        except TimeoutError as error:
            seconds = f"{OPEN_SECONDS:.0f} s"
            raise self._unavailable(f"not taken within {seconds}") from error
        await self._settled(self._may_be_refused)
        if self._tunnel.fault:
            raise self._unavailable(self._tunnel.fault)

    def _may_be_refused(self) -> bool:
        tunnel = self._tunnel
        return tunnel.owes_reason or not (tunnel.received or tunnel.ended or tunnel.fault)

    async def _settled(self, in_doubt: Callable[[], bool]) -> None:
        """Wait for bad news while there may be some, but not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                while in_doubt():
                    await self._receive()

    def _unavailable(self, why: str) -> UnavailableError:
        return UnavailableError(f"port {self._tunnel.port} can't be reached: {why}")

    async def _receive(self) -> None:
        message = await self._socket.receive()
        if message.type is aiohttp.WSMsgType.BINARY:
            if answer := self._tunnel.feed(message.data):
                await self._send(answer)
        elif message.type is not aiohttp.WSMsgType.TEXT:
            self._tunnel.lost("the connection to the other API server ended")

    async def _send(self, frame: bytes) -> None:
        try:
            await self._socket.send_bytes(frame)
        except (aiohttp.ClientError, OSError) as error:
            raise UnavailableError(f"the connection broke: {error}") from error


async def open_port(upstream: Upstream, path: str, port: int) -> RemotePort:
    """A connection that was taken. Raises UnavailableError, naming the port, if nobody listens."""
    async with AsyncExitStack() as stack:
        opening = upstream.websocket(path, [("ports", str(port))], [PROTOCOL])
        socket = await stack.enter_async_context(opening)
        tunnel = Tunnel(port)
        await socket.send_bytes(tunnel.begin())
        connection = RemotePort(socket, tunnel, stack.pop_all())
    try:
        await connection.settle()
    except BaseException:  # Also a cancelled caller must not leave its connection behind.
        await connection.close()
        raise
    return connection
