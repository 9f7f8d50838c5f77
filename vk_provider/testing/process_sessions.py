"""exec and attach: the streams of a client and those of a process, copied chunk by chunk.

Fed by the provider's ``exec`` and ``attach``; speaks to one :mod:`.process_instance`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Self

from vk_provider.pods.types import Terminated
from vk_provider.sessions import closing
from vk_provider.streams import AttachRequest, ContainerIO, ExecRequest
from vk_provider.testing.process_container import Container, handed_over
from vk_provider.testing.process_guests import Guest
from vk_provider.testing.process_instance import ProcessInstance
from vk_provider.testing.process_link import Launch
from vk_provider.testing.process_output import STDERR
from vk_provider.testing.process_pipe import Pipe, resize

_FIRST_SIZE_SECONDS = 0.05
_HANG_UP_SECONDS = 1.0

_Write = Callable[[bytes], Awaitable[None]]
_Work = Coroutine[Any, Any, None]


class _Streams:
    """Our ends of a command's streams, and its own until they are handed over."""

    def __init__(self, request: ExecRequest, io: ContainerIO) -> None:
        self.stdin: Pipe | None = None
        self.terminal: Pipe | None = None
        self.outputs: list[tuple[Pipe, _Write]] = []
        self.theirs: list[int] = []
        if request.tty:
            self._open_terminal(request, io)
        else:
            self._open_pipes(request, io)

    def _open_terminal(self, request: ExecRequest, io: ContainerIO) -> None:
        ours, theirs = os.openpty()
        self.theirs = [theirs, os.dup(theirs), os.dup(theirs)]
        # Two descriptors, since reading and writing end at different times.
        self.terminal = Pipe(os.dup(ours))
        self.stdin = self.terminal if request.stdin else None
        self.outputs.append((Pipe(ours), io.write_stdout))

    def _open_pipes(self, request: ExecRequest, io: ContainerIO) -> None:
        if request.stdin:
            reading, writing = os.pipe()
            self.stdin = Pipe(writing)
            self.theirs.append(reading)
        else:
            self.theirs.append(os.open(os.devnull, os.O_RDONLY))
        for is_wanted, write in (
            (request.stdout, io.write_stdout),
            (request.stderr, io.write_stderr),
        ):
            if is_wanted:
                reading, writing = os.pipe()
                self.outputs.append((Pipe(reading), write))
                self.theirs.append(writing)
            else:
                self.theirs.append(os.open(os.devnull, os.O_WRONLY))

    def close(self) -> None:
        """Let go of our ends."""
        for pipe in (self.stdin, self.terminal, *(pipe for pipe, _ in self.outputs)):
            if pipe is not None:
                pipe.close()


async def run_command(instance: ProcessInstance, request: ExecRequest, io: ContainerIO) -> int:
    """Run a command in a container; its exit code."""
    instance.running(request.container)
    streams = _Streams(request, io)
    try:
        async with _Beside() as beside:
            with handed_over(streams.theirs):
                if streams.terminal is not None:
                    await _first_size(beside, streams.terminal, io)
                guest = _invite(instance, request, streams.theirs)
            try:
                return await _converse(beside, guest, request, streams, io)
            finally:
                if not guest.ended.done() and instance.link is not None:
                    instance.link.kill(guest.name)
    finally:
        streams.close()


def _invite(instance: ProcessInstance, request: ExecRequest, theirs: list[int]) -> Guest:
    container, link = instance.running(request.container)
    env = {"TERM": "xterm"} | dict(container.env) if request.tty else container.env
    launch = Launch("", request.command, container.cwd, env, tty=request.tty)
    return instance.guests.invite(link, request.container, launch, theirs)


async def _converse(
    beside: _Beside, guest: Guest, request: ExecRequest, streams: _Streams, io: ContainerIO
) -> int:
    """Copy until the command has ended and all that it wrote has been handed on."""
    if streams.stdin is not None:
        beside.start(_serve_stdin(guest, io, streams))
    copies = [beside.run(_copy_out(pipe, write)) for pipe, write in streams.outputs]
    pending: set[asyncio.Future[Any]] = {guest.ended, *copies}
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()  # raises what writing to the client raised
        if guest.ended in done:
            beside.start(_wind_up(streams))
    if guest.failure is not None:
        words = f'exec: "{request.command[0]}": {guest.failure}\n'
        await (io.write_stdout if request.tty else io.write_stderr)(words.encode())
    return guest.ended.result()


async def _serve_stdin(guest: Guest, io: ContainerIO, streams: _Streams) -> None:
    """A terminal without a process would swallow Ctrl-C, so the process comes first."""
    await guest.begun.wait()
    if streams.stdin is not None:
        await _copy_in(io, streams.stdin, closes=streams.terminal is None)


async def _wind_up(streams: _Streams) -> None:
    """After the command's end its output ends, whoever of its children still holds it open."""
    if streams.terminal is not None:
        # A terminal hands its last output on a moment later, and then hangs up by itself.
        await asyncio.sleep(_HANG_UP_SECONDS)
    for pipe, _ in streams.outputs:
        pipe.expect_no_more()


async def _copy_out(pipe: Pipe, write: _Write) -> None:
    while chunk := await pipe.read():
        await write(chunk)


async def _copy_in(io: ContainerIO, pipe: Pipe, *, closes: bool) -> None:
    # A process that reads no more is no fault: it has what it wanted.
    with suppress(OSError):
        async with closing(io.stdin()) as chunks:
            async for chunk in chunks:
                await pipe.write(chunk)
    if closes:
        pipe.close()


async def _first_size(beside: _Beside, terminal: Pipe, io: ContainerIO) -> None:
    """Follow the client's window; give it a moment to say how large it is to begin with."""
    known = asyncio.Event()
    beside.start(_follow_sizes(terminal, io, known))
    with suppress(TimeoutError):
        async with asyncio.timeout(_FIRST_SIZE_SECONDS):
            await known.wait()


async def _follow_sizes(terminal: Pipe, io: ContainerIO, known: asyncio.Event) -> None:
    async with closing(io.resizes()) as sizes:
        async for size in sizes:
            if terminal.is_open:
                resize(terminal.fd, size)
            known.set()
    known.set()


async def attach_to(
    instance: ProcessInstance, request: AttachRequest, io: ContainerIO
) -> int | None:
    """Join a container's own streams until it ends; its exit code."""
    container, _ = instance.running(request.container)
    output, stdin = container.output, container.stdin
    assert output is not None, "a running container has been launched"
    with output.attached() as attacher:
        async with _Beside() as beside:
            if stdin is not None and request.stdin:
                beside.start(_feed(container, stdin, io))
            if stdin is not None and container.plan.tty:
                beside.start(_follow_sizes(stdin, io, asyncio.Event()))
            while (item := await attacher.take()) is not None:
                stream, chunk = item
                if stream == STDERR and request.stderr:
                    await io.write_stderr(chunk)
                elif stream != STDERR and request.stdout:
                    await io.write_stdout(chunk)
                output.resume()
    state = container.state
    return state.exit_code if isinstance(state, Terminated) else None


async def _feed(container: Container, stdin: Pipe, io: ContainerIO) -> None:
    """What a client types, to the container's own stdin; with ``stdinOnce`` the first one's only.

    Without it the container's stdin stays open for the next client.
    """
    try:
        await _copy_in(io, stdin, closes=False)
    finally:
        if container.plan.stdin_once:
            container.close_stdin()


class _Beside:
    """Tasks that live no longer than a block."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def run(self, work: _Work) -> asyncio.Task[None]:
        """Start a task whose end somebody waits for."""
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    def start(self, work: _Work) -> None:
        """Start a task that runs as long as it may."""
        self._tasks.append(asyncio.create_task(work))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
