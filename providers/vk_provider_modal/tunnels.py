"""A connection to a port of a sandbox through its tunnel: plain TCP, or TLS that Modal ends.

Only the ports that a pod names have tunnels, since Modal opens none later.
Fed by ``provider.open_port`` with the addresses that the service names.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from vk_provider.faults import UnavailableError
from vk_provider.streams import CHUNK_BYTES

CONNECT_SECONDS = 15.0
_HTTPS = 443


class TunnelConnection:
    """One connection to a port of a sandbox."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        """Up to CHUNK_BYTES; empty at the end, whoever made it."""
        try:
            return await self._reader.read(CHUNK_BYTES)
        except OSError:
            return b""

    async def write(self, chunk: bytes) -> None:
        """Send; returns when there is room again. Raises ``UnavailableError``."""
        try:
            self._writer.write(chunk)
            await self._writer.drain()
        except OSError as error:
            raise UnavailableError(f"Modal, tunnel: {type(error).__name__}") from error

    async def write_eof(self) -> None:
        """Close our direction. TLS has no half of a connection to be closed: there it stays."""
        with suppress(OSError):
            if self._writer.can_write_eof():
                self._writer.write_eof()

    async def close(self) -> None:
        """End it."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


async def connect(addresses: Mapping[int, str], port: int) -> TunnelConnection:
    """Connect to a port. Raises ``UnavailableError`` where it has no tunnel or nobody listens."""
    address = addresses.get(port)
    if address is None:
        known = ", ".join(map(str, sorted(addresses))) or "none"
        remedy = f"name it in the container's ports (with a tunnel: {known})"
        raise UnavailableError(f"port {port} has no tunnel; {remedy}")
    is_secure = address.startswith("https://")
    where = urlsplit(address if is_secure else f"tcp://{address}")
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                where.hostname,
                where.port or _HTTPS,
                ssl=ssl.create_default_context() if is_secure else None,
                limit=CHUNK_BYTES,
            )
    except (OSError, TimeoutError) as error:
        said = f"Modal, tunnel of port {port}: {type(error).__name__}"
        raise UnavailableError(said) from error
    return TunnelConnection(reader, writer)
