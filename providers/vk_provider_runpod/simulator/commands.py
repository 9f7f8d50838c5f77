"""A command that an SSH client asked for, as a process of this machine.

Fed by ``shells``; copies between the process and the client, chunk by chunk.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import asyncssh

from vk_provider.testing.simulator.terminal import (
    hear_signals,
    read_some,
    resize,
    start_in_terminal,
)

CHUNK = 32 * 1024
_Client = asyncssh.SSHServerProcess[bytes]


@dataclass(slots=True, eq=False)
class Command:
    """One process, and our ends of its input and outputs; a terminal has no stderr of its own."""

    process: asyncio.subprocess.Process
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader | None = None
    terminal: int | None = None

    @classmethod
    async def start(cls, line: str, env: Mapping[str, str], folder: Path, client: _Client) -> Self:
        """Run a shell's command line. Raises ``OSError`` where that can't be done."""
        login = {key: env[key] for key in ("PATH", "HOME", "TMPDIR")}
        login |= {"SHELL": "/bin/sh", "USER": "root", "LOGNAME": "root"}
        login["SSH_CONNECTION"] = "127.0.0.1 0 127.0.0.1 22"
        if client.term_type is not None:
            login["TERM"] = client.term_type
            args, size = ("/bin/sh", "-c", line), client.term_size[:2]
            made = await start_in_terminal(args, login, folder, size)
            return cls(made.process, made.stdin, made.stdout, terminal=made.fd)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", line,
            stdin=pipe, stdout=pipe, stderr=pipe,
            env=login, cwd=folder, start_new_session=True, preexec_fn=hear_signals,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        return cls(process, process.stdin, process.stdout, process.stderr)

    async def serve(self, client: _Client) -> None:
        """Copy until it has ended and all is told; then tell how it ended."""
        feeding = asyncio.create_task(self._feed(client))
        try:
            await asyncio.gather(
                _copy(self.stdout, client.stdout), _copy(self.stderr, client.stderr)
            )
            code = await self.process.wait()
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
            self.stdin.close()
        if client.is_closing():
            return
        if code < 0:
            client.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))
        else:
            client.exit(code)

    async def _feed(self, client: _Client) -> None:
        while True:
            try:
                chunk = await client.stdin.read(CHUNK)
            except asyncssh.TerminalSizeChanged as change:
                if self.terminal is not None:
                    resize(self.terminal, change.width, change.height)
                continue
            if not chunk:
                break
            self.stdin.write(chunk)
            await self.stdin.drain()
        if self.terminal is None:
            self.stdin.close()
        elif client.is_closing():
            # Who sat at the terminal has gone: the session is told as when a line drops.
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGHUP)


async def _copy(source: asyncio.StreamReader | None, client: asyncssh.SSHWriter[bytes]) -> None:
    """To the end, also when nobody listens any more: closing a channel ends no command."""
    while source is not None and (chunk := await read_some(source, CHUNK)):
        with suppress(OSError, asyncssh.Error):
            client.write(chunk)
            await client.drain()
