"""A command in a container, between the core's streams and an SSH server's.

Nothing piles up: what the client does not take stays with the server, and in the end with the
command. Fed by ``streams``; speaks through ``ssh``.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import asyncssh

from vk_provider.faults import ProviderError, UnavailableError
from vk_provider.pods.types import InstanceRef
from vk_provider.sessions import TerminalSizes, beside
from vk_provider.streams import CHUNK_BYTES, ContainerIO, ExecRequest
from vk_provider_runpod import remote_shell
from vk_provider_runpod.ssh import Connections, spoken

ENDING_SECONDS = 8.0
WINDOW_BYTES = 1 << 20
TERM = "xterm-256color"
_SIGNALLED = 128

_Process = asyncssh.SSHClientProcess[bytes]


class Session:
    """One command, its client, and the mark by which it is found."""

    def __init__(self, connections: Connections, ref: InstanceRef, request: ExecRequest) -> None:
        self._connections = connections
        self._ref = ref
        self._request = request
        self._mark = secrets.token_hex(8)
        self._sizes = TerminalSizes()

    async def run(self, io: ContainerIO) -> int:
        """Run the command to its end; its exit code. Cancelled: the command is ended too."""
        sizing = [self._sizes.collect(io)] if self._request.tty else []
        async with beside(*sizing):
            line = remote_shell.enter(self._request.command, self._mark)
            options = await self._options()
            container = self._request.container
            async with self._connections.process(self._ref, container, line, **options) as process:
                is_over = False
                try:
                    code = await self._attend(process, io)
                    is_over = True
                finally:
                    # Otherwise its client is gone, whether that was noticed by us or by the core.
                    if not is_over:
                        await self._end()
                return code

    async def _options(self) -> dict[str, Any]:
        request = self._request
        nowhere, piped = asyncssh.DEVNULL, asyncssh.PIPE
        streams = {
            "stdout": piped if request.stdout else nowhere,
            "stderr": piped if request.stderr and not request.tty else nowhere,
            "window": WINDOW_BYTES,
        }
        if not request.tty:
            return streams
        size = await self._sizes.first()
        return {**streams, "term_type": TERM, "term_size": (size.width, size.height)}

    async def _attend(self, process: _Process, io: ContainerIO) -> int:
        request = self._request
        resizing = [self._resize(process)] if request.tty else []
        async with beside(self._feed(process, io), *resizing):
            try:
                async with asyncio.TaskGroup() as pumps:
                    if request.stdout:
                        pumps.create_task(self._pump(process.stdout, io.write_stdout))
                    if request.stderr and not request.tty:
                        pumps.create_task(self._pump(process.stderr, io.write_stderr))
                    await process.wait_closed()
            except* ProviderError as failures:
                raise failures.exceptions[0] from None
        return self._code(process)

    def _code(self, process: _Process) -> int:
        if process.exit_signal is not None:
            name = process.exit_signal[0]
            known = getattr(signal, f"SIG{name}", None)
            return _SIGNALLED + (int(known) if known is not None else 0)
        if process.exit_status is None:
            words = f"the connection to instance {self._ref.id} broke before the command's end"
            raise UnavailableError(words)
        return process.exit_status

    async def _pump(
        self, reader: asyncssh.SSHReader[bytes], write: Callable[[bytes], Awaitable[None]]
    ) -> None:
        while True:
            with spoken(self._ref):
                chunk = await reader.read(CHUNK_BYTES)
            if not chunk:
                return
            await write(chunk)

    async def _feed(self, process: _Process, io: ContainerIO) -> None:
        # A command that reads no more is no fault: it has what it wanted.
        with suppress(OSError, asyncssh.Error):
            if self._request.stdin:
                async for chunk in io.stdin():
                    process.stdin.write(chunk)
                    await process.stdin.drain()
            # A terminal has no end of input of its own: Ctrl-D is typed.
            if not self._request.tty:
                process.stdin.write_eof()

    async def _resize(self, process: _Process) -> None:
        while True:
            size = await self._sizes.next()
            with suppress(OSError, asyncssh.Error):
                process.change_terminal_size(size.width, size.height)

    async def _end(self) -> None:
        """Closing a channel ends no command: a second one does, by the mark of the first."""
        line, nowhere = remote_shell.end(self._mark), asyncssh.DEVNULL
        with suppress(ProviderError, TimeoutError):
            async with (
                asyncio.timeout(ENDING_SECONDS),
                self._connections.process(
                    self._ref, self._request.container, line, stdout=nowhere, stderr=nowhere
                ) as ending,
            ):
                await ending.wait_closed()
