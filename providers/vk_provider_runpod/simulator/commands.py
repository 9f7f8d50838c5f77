"""A command that an SSH client asked for, as a process of this machine.

Fed by ``shells``; copies between the process and the client, chunk by chunk.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import asyncssh

CHUNK = 32 * 1024
_Client = asyncssh.SSHServerProcess[bytes]


def _hear_signals() -> None:
    """Whoever starts us in the background has us ignore Ctrl-C; a command hears it all the same."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _own_terminal() -> None:
    _hear_signals()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


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
            return await cls._start_in_terminal(line, login, folder, client)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", line,
            stdin=pipe, stdout=pipe, stderr=pipe,
            env=login, cwd=folder, start_new_session=True, preexec_fn=_hear_signals,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        return cls(process, process.stdin, process.stdout, process.stderr)

    @classmethod
    async def _start_in_terminal(
        cls, line: str, env: Mapping[str, str], folder: Path, client: _Client
    ) -> Self:
        ours, theirs = pty.openpty()
        _resize(ours, *client.term_size[:2])
        with ExitStack() as undo:
            undo.callback(os.close, ours)
            try:
                process = await asyncio.create_subprocess_exec(
                    "/bin/sh", "-c", line,
                    stdin=theirs, stdout=theirs, stderr=theirs,
                    env=env, cwd=folder, start_new_session=True,
                    preexec_fn=_own_terminal,
                )  # fmt: skip
            finally:
                os.close(theirs)
            undo.pop_all()
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(ours), "rb", 0)
        )
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(ours, "wb", 0)
        )
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        return cls(process, writer, reader, terminal=ours)

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
                    _resize(self.terminal, change.width, change.height)
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
    while source is not None and (chunk := await _read(source)):
        with suppress(OSError, asyncssh.Error):
            client.write(chunk)
            await client.drain()


async def _read(source: asyncio.StreamReader) -> bytes:
    try:
        return await source.read(CHUNK)
    except OSError:
        return b""  # the far side of a terminal is gone


def _resize(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
