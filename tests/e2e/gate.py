"""A door in front of a service: closed, it cuts every connection and refuses new ones.

Feeds the end-to-end tests that take a backend away and bring it back, with all that it holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Gate:
    """A port of loopback that leads to another one, while it is open."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._port = 0

    @property
    def url(self) -> str:
        """Where the service is found, open or not."""
        return f"http://127.0.0.1:{self._port}"

    async def open(self) -> None:
        """Let everybody through; always on the same port."""
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Cut what is open, and let nobody through."""
        if self._server is not None:
            self._server.close()
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection(self._target.hostname, self._target.port)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, there[1]}
        self._writers |= pair
        try:
            await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
        finally:
            self._writers -= pair


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def gate(url: str) -> AsyncIterator[Gate]:
    """An open one."""
    made = Gate(url)
    await made.open()
    try:
        yield made
    finally:
        await made.close()
