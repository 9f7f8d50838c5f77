"""A command of exec as a process of this machine, its output kept by offset.

A reader may come back and read once more, so nothing is forgotten; but no more is taken from the
process than a reader has asked for, and some. Fed by ``router``.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from vk_provider.testing.simulator.terminal import hear_signals, read_some, start_in_terminal

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
        while chunk := await read_some(reader, CHUNK):
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
            return await cls._start_in_terminal(wanted, wanted.terminal)
        pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *wanted.args,
            stdin=pipe,
            stdout=pipe if wanted.stdout else nowhere,
            stderr=pipe if wanted.stderr else nowhere,
            env=dict(wanted.env),
            cwd=wanted.folder,
            start_new_session=True,
            preexec_fn=hear_signals,
        )
        command = cls(process, process.stdin)
        await command._follow(command.stdout, process.stdout)
        await command._follow(command.stderr, process.stderr)
        return command

    @classmethod
    async def _start_in_terminal(cls, wanted: Wanted, size: tuple[int, int]) -> Self:
        env = {"TERM": "xterm-256color", **wanted.env}
        made = await start_in_terminal(wanted.args, env, wanted.folder, size)
        command = cls(made.process, made.stdin, terminal=made.reading)
        await command._follow(command.stdout, made.stdout)
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
