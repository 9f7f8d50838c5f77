"""A command of exec as a process of this machine, its output kept by offset.

A reader may come back and read once more, so nothing is forgotten; but no more is taken from the
process than a reader has asked for, and some. Fed by ``router``.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Self

CHUNK = 64 * 1024
AHEAD = 256 * 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be run. ``terminal``: columns and rows, None without one."""

    args: tuple[str, ...]
    env: Mapping[str, str]
    folder: str
    terminal: tuple[int, int] | None = None
    stdout: bool = True
    stderr: bool = True


@dataclass(slots=True)
class Output:
    """One stream of a process."""

    content: bytearray = field(default_factory=bytearray)
    is_over: bool = False
    asked: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def fill(self, reader: asyncio.StreamReader) -> None:
        """Read to the end, never far ahead of who reads from us."""
        while chunk := await _chunk(reader):
            async with self.changed:
                self.content += chunk
                self.changed.notify_all()
                await self.changed.wait_for(lambda: len(self.content) < self.asked + AHEAD)
        await self.finish()

    async def finish(self) -> None:
        """Nothing more will come."""
        async with self.changed:
            self.is_over = True
            self.changed.notify_all()

    async def read(self, offset: int) -> AsyncIterator[bytes]:
        """Everything from an offset on."""
        while True:
            async with self.changed:
                self.asked = max(self.asked, offset)
                self.changed.notify_all()
                await self._more_than(offset)
                chunk = bytes(self.content[offset : offset + CHUNK])
            if not chunk:
                return
            offset += len(chunk)
            yield chunk

    async def _more_than(self, offset: int) -> None:
        await self.changed.wait_for(lambda: self.is_over or len(self.content) > offset)


async def _chunk(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(CHUNK)
    except OSError:
        return b""  # the far side of a terminal is gone


def _hear_signals() -> None:
    """Whoever starts us in the background has us ignore Ctrl-C; a command hears it all the same."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _own_terminal() -> None:
    _hear_signals()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@dataclass(slots=True)
class Command:
    """One process and its streams."""

    process: asyncio.subprocess.Process
    stdin: asyncio.StreamWriter | None = None
    stdout: Output = field(default_factory=Output)
    stderr: Output = field(default_factory=Output)
    written: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    terminal: asyncio.ReadTransport | None = None

    @classmethod
    async def start(cls, wanted: Wanted) -> Self:
        """Run it. Raises ``OSError`` where that can't be done."""
        if wanted.terminal is not None:
            return await cls._start_in_terminal(wanted, *wanted.terminal)
        pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *wanted.args,
            stdin=pipe,
            stdout=pipe if wanted.stdout else nowhere,
            stderr=pipe if wanted.stderr else nowhere,
            env=dict(wanted.env),
            cwd=wanted.folder,
            start_new_session=True,
            preexec_fn=_hear_signals,
        )
        command = cls(process, process.stdin)
        await command._follow(command.stdout, process.stdout)
        await command._follow(command.stderr, process.stderr)
        return command

    @classmethod
    async def _start_in_terminal(cls, wanted: Wanted, columns: int, rows: int) -> Self:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        with ExitStack() as stack:
            stack.callback(os.close, ours)
            try:
                process = await asyncio.create_subprocess_exec(
                    *wanted.args,
                    stdin=theirs,
                    stdout=theirs,
                    stderr=theirs,
                    env={"TERM": "xterm-256color", **wanted.env},
                    cwd=wanted.folder,
                    start_new_session=True,
                    preexec_fn=_own_terminal,
                )
            finally:
                os.close(theirs)
            stack.pop_all()
        command = cls(process)
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
        command.terminal, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(ours), "rb", 0)
        )
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(ours, "wb", 0)
        )
        command.stdin = asyncio.StreamWriter(transport, protocol, None, loop)
        await command._follow(command.stdout, reader)
        await command._follow(command.stderr, None)
        return command

    async def _follow(self, output: Output, reader: asyncio.StreamReader | None) -> None:
        if reader is None:
            await output.finish()
        else:
            self.tasks.append(asyncio.create_task(output.fill(reader)))

    async def write(self, offset: int, data: bytes, *, eof: bool) -> None:
        """Feed it. What comes a second time was taken already."""
        fresh = data[max(0, self.written - offset) :]
        self.written += len(fresh)
        if self.stdin is None:
            return
        with suppress(BrokenPipeError, ConnectionResetError):
            self.stdin.write(fresh)
            await self.stdin.drain()
            if eof and self.terminal is None:
                self.stdin.close()

    async def close(self) -> None:
        """End it, with whatever it has started in its session."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for transport in (self.stdin, self.terminal):
            if transport is not None:
                transport.close()
