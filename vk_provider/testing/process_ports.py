"""TCP connections to the ports of local processes.

Fed by the provider's ``open_port``; feeds port-forwarding.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Collection
from contextlib import ExitStack, suppress

from vk_provider.faults import UnavailableError
from vk_provider.testing.process_pipe import Pipe

_HOST = "127.0.0.1"
_TRIES = 100


def free_port(taken: Collection[int] = ()) -> int:
    """A port of this machine that nobody listens on now and nobody was given."""
    for _ in range(_TRIES):
        with socket.socket() as probe:
            probe.bind((_HOST, 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port
    raise UnavailableError("this machine has no free port left")


async def connect(instance: str, port: int, real_port: int) -> ProcessPort:
    """A connection to a port. Raises ``UnavailableError`` in a kubelet's words."""
    with ExitStack() as undo:
        connection = undo.enter_context(socket.socket())
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, (_HOST, real_port))
        except OSError as error:
            why = os.strerror(error.errno or 0).lower()
            raise UnavailableError(
                f"failed to connect to localhost:{port} inside {instance}, "
                f"IPv4: dial tcp4 {_HOST}:{real_port}: connect: {why}"
            ) from error
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        undo.pop_all()
    return ProcessPort(connection)


class ProcessPort:
    """One connection, read and written only when somebody asks for it."""

    def __init__(self, connection: socket.socket) -> None:
        # Both directions share the socket, and each waits on a descriptor of its own.
        self._in = Pipe(os.dup(connection.fileno()))
        self._out = Pipe(connection.detach())

    async def read(self) -> bytes:
        """Up to CHUNK_BYTES; empty when the far side has closed its direction."""
        try:
            return await self._in.read()
        except OSError as error:
            raise UnavailableError(f"the connection broke: {error.strerror}") from error

    async def write(self, chunk: bytes) -> None:
        """Send; returns when there is room again."""
        try:
            await self._out.write(chunk)
        except OSError as error:
            raise UnavailableError(f"the connection broke: {error.strerror}") from error

    async def write_eof(self) -> None:
        """Close our direction; reading goes on."""
        with suppress(OSError), socket.socket(fileno=os.dup(self._out.fd)) as shared:
            shared.shutdown(socket.SHUT_WR)

    async def close(self) -> None:
        """End it. Idempotent."""
        self._in.close()
        self._out.close()
