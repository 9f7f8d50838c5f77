"""A command in a sandbox, between the core's streams and Modal's.

Modal can neither end a command nor resize its terminal, so each carries a mark in its environment,
by which a second command finds it and does that from inside: as far as the image has a shell.
Fed by ``provider.exec``; speaks through ``workspace``.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from vk_provider.faults import ProviderError
from vk_provider.sessions import TerminalSizes, beside, write_in_chunks
from vk_provider.streams import ContainerIO, ExecRequest
from vk_provider_modal.client import Start
from vk_provider_modal.processes import Process
from vk_provider_modal.workspace import Workspace

MARK = "VK_PROVIDER_EXEC"
ENDING_SECONDS = 15.0
# Children have the mark as well. Whoever looks has it as an argument only, not as a variable.
_END = (
    "for signal in HUP KILL; do for each in /proc/[0-9]*; do "
    'if grep -qs "$1" "$each/environ"; then kill -s "$signal" "${each##*/}"; fi; '
    "done; sleep 0.2; done"
)
_RESIZE = (
    'for each in /proc/[0-9]*; do if grep -qs "$1" "$each/environ"; then '
    'terminal=$(readlink "$each/fd/0"); case $terminal in /dev/pts/*) '
    'stty -F "$terminal" cols "$2" rows "$3"; exit;; esac; fi; done'
)


class Session:
    """One command, its client, and the mark by which it is found."""

    def __init__(self, workspace: Workspace, sandbox_id: str, request: ExecRequest) -> None:
        self._workspace = workspace
        self._sandbox_id = sandbox_id
        self._request = request
        self._mark = secrets.token_hex(8)
        self._sizes = TerminalSizes()

    async def run(self, io: ContainerIO) -> int:
        """Run the command to its end; its exit code. Cancelled: the command is ended too."""
        sizing = [self._sizes.collect(io)] if self._request.tty else []
        async with beside(*sizing):
            process = await self._start()
            try:
                return await self._attend(process, io)
            except asyncio.CancelledError:
                await self._end()
                raise

    async def _start(self) -> Process:
        request = self._request
        size = await self._sizes.first() if request.tty else None
        start = Start(
            request.command,
            {MARK: self._mark},
            terminal=None if size is None else (size.width, size.height),
            stdout=request.stdout,
            stderr=request.stderr and not request.tty,
        )
        return await self._workspace.start_process(self._sandbox_id, start)

    async def _attend(self, process: Process, io: ContainerIO) -> int:
        request = self._request
        resizing = [self._resize()] if request.tty else []
        async with beside(self._feed(process, io), *resizing):
            try:
                async with asyncio.TaskGroup() as pumps:
                    if request.stdout:
                        pumps.create_task(_pump(process.stdout(), io.write_stdout))
                    if request.stderr and not request.tty:
                        pumps.create_task(_pump(process.stderr(), io.write_stderr))
                    return await process.wait()
            except* ProviderError as failures:
                raise failures.exceptions[0] from None

    async def _feed(self, process: Process, io: ContainerIO) -> None:
        if self._request.stdin:
            async for chunk in io.stdin():
                await process.write(chunk)
        await process.write_eof()

    async def _resize(self) -> None:
        while True:
            size = await self._sizes.next()
            with suppress(ProviderError):
                await self._aside(_RESIZE, str(size.width), str(size.height))

    async def _end(self) -> None:
        with suppress(ProviderError, TimeoutError):
            async with asyncio.timeout(ENDING_SECONDS):
                await self._aside(_END)

    async def _aside(self, script: str, *words: str) -> None:
        """Run a script of ours beside the command."""
        command = ("/bin/sh", "-c", script, "vk-provider", f"{MARK}={self._mark}", *words)
        start = Start(command, stdout=False, stderr=False)
        await (await self._workspace.start_process(self._sandbox_id, start)).wait()


async def _pump(chunks: AsyncIterator[bytes], write: Callable[[bytes], Awaitable[None]]) -> None:
    async for chunk in chunks:
        await write_in_chunks(write, chunk)
