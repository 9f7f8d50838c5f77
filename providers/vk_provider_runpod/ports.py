"""TCP connections to ports of an instance, through its SSH server.

Fed by ``streams``; speaks through ``ssh``.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress

import asyncssh

from vk_provider.faults import NotSupportedError, UnavailableError
from vk_provider.pods.types import InstanceRef
from vk_provider.streams import CHUNK_BYTES
from vk_provider_runpod.ssh import Connections, spoken

HOST = "localhost"
"""As a kubelet: whatever the process listens on, its own loopback reaches it."""
WINDOW_BYTES = 1 << 20


async def open_port(connections: Connections, ref: InstanceRef, port: int) -> SshPort:
    """A connection to a port. Raises ``UnavailableError`` where nobody listens."""
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(connections.tunnel(ref))
        try:
            with spoken(ref):
                reader, writer = await _dial(connection, port)
        except UnavailableError as error:
            cause = error.__cause__
            if _is_forbidden(cause):
                raise NotSupportedError(
                    f"the SSH server of instance {ref.id} forwards no ports (AllowTcpForwarding)"
                ) from error
            words = f"failed to connect to port {port} inside {ref.id}: {cause or error}"
            raise UnavailableError(words) from error
        return SshPort(ref, reader, writer, stack.pop_all())


async def _dial(
    connection: asyncssh.SSHClientConnection, port: int
) -> tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]:
    return await connection.open_connection(HOST, port, encoding=None, window=WINDOW_BYTES)


def _is_forbidden(cause: BaseException | None) -> bool:
    prohibited = asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED
    return isinstance(cause, asyncssh.ChannelOpenError) and cause.code == prohibited


class SshPort:
    """One connection; see ``PortConnection``."""

    def __init__(
        self,
        ref: InstanceRef,
        reader: asyncssh.SSHReader[bytes],
        writer: asyncssh.SSHWriter[bytes],
        line: AbstractAsyncContextManager[object],
    ) -> None:
        self._ref = ref
        self._reader = reader
        self._writer = writer
        self._line = line
        self._is_open = True

    async def read(self) -> bytes:
        """Up to CHUNK_BYTES; empty when the far side has closed its direction."""
        with spoken(self._ref):
            return await self._reader.read(CHUNK_BYTES)

    async def write(self, chunk: bytes) -> None:
        """Send; returns when there is room again."""
        with spoken(self._ref):
            self._writer.write(chunk)
            await self._writer.drain()

    async def write_eof(self) -> None:
        """Close our direction; reading goes on."""
        with suppress(OSError, asyncssh.Error):
            self._writer.write_eof()

    async def close(self) -> None:
        """End it. Idempotent."""
        if self._is_open:
            self._is_open = False
            self._writer.channel.abort()
            await self._line.__aexit__(None, None, None)
