"""A backend's log lines as one stream that always ends: with the container, or with the client.

They go in batches: what has come by the time that somebody looks, so that a line that comes alone
goes at once, and many cost little. Nothing is read ahead of the client but one batch and a tail,
which are bounded.
Fed by ``SupportsLogs.read_logs``; feeds ``logs``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from vk_provider.pods.types import LogLine, LogOptions
from vk_provider.sessions import close
from vk_provider.wire.logs import LINE_BYTES, Joint, LogPipe, Tail

Read = Callable[[LogOptions], AsyncIterator[LogLine]]
"""Reads one container's log of one instance from its backend."""
Lines = Sequence[LogLine]
"""A batch, never empty."""

_BATCH_BYTES = 64 * 1024


def options_for_backend(options: LogOptions) -> LogOptions:
    """What a backend is asked: timestamps and the byte limit are none of its business."""
    return replace(options, timestamps=False, limit_bytes=None)


async def log_lines(
    read: Read, options: LogOptions, is_over: Callable[[], bool], quiet_seconds: float
) -> AsyncGenerator[Lines, None]:
    """The lines that the options ask for, even of a backend that honours none of them."""
    asked = options_for_backend(options)
    if asked.tail_lines is None:
        async with aclosing(until_over(read(asked), is_over, quiet_seconds)) as batches:
            async for batch in batches:
                yield batch
        return
    tail, joint = await _read_tail(read, asked)
    if tail.lines:
        yield tail.lines
    if not asked.follow:
        return
    rest = replace(asked, tail_lines=None, since=joint.last or asked.since)
    async with aclosing(until_over(read(rest), is_over, quiet_seconds)) as batches:
        async for batch in batches:
            if new := [line for line in batch if joint.is_new(line)]:
                yield new


async def _read_tail(read: Read, asked: LogOptions) -> tuple[Tail, Joint]:
    """The last lines of what there is now, and where a follow goes on after them.

    A stream of old and new lines does not say where the old ones end, so a followed tail is read
    in two steps. Even for no lines at all one is asked for: it says from when on.
    """
    count = asked.tail_lines or 0
    tail, joint, pipe = Tail(count), Joint(), LogPipe(asked)
    if count == 0 and not asked.follow:
        return tail, joint
    first = replace(asked, follow=False, tail_lines=max(count, 1))
    async with aclosing(until_over(read(first))) as batches:
        async for batch in batches:
            for line in filter(pipe.is_wanted, batch):
                tail.push(line)
                joint.note(line)
    return tail, joint


async def until_over(
    lines: AsyncIterator[LogLine],
    is_over: Callable[[], bool] | None = None,
    quiet_seconds: float | None = None,
) -> AsyncGenerator[Lines, None]:
    """Pass lines on until they end, or until they have been quiet twice in a row while ``is_over``
    says that no more are to come. Closes the source however it is left."""
    intake = _Intake(lines)
    try:
        while True:
            quiet = 0
            while not await intake.comes(quiet_seconds):
                quiet = quiet + 1 if is_over is not None and is_over() else 0
                if quiet == 2:
                    return
            batch = intake.take()
            if not batch:
                return
            yield batch
    finally:
        await intake.close()


class _Intake:
    """Reads a source in a task of its own until it holds a batch that nobody has taken."""

    def __init__(self, lines: AsyncIterator[LogLine]) -> None:
        self._lines = lines
        self._held: list[LogLine] = []
        self._bytes = 0
        self._came = asyncio.Event()
        self._room = asyncio.Event()
        self._filling = asyncio.create_task(self._fill())
        self._filling.add_done_callback(self._ended)

    async def comes(self, seconds: float | None) -> bool:
        """Whether there is something to take within so many seconds: lines, or the end."""
        if self._held or self._filling.done():
            return True
        self._came.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._came.wait()
        except TimeoutError:
            return False
        return True

    def take(self) -> list[LogLine]:
        """What there is; nothing at the end. Raises what the source raised after its lines."""
        if not self._held:
            self._filling.result()
        held, self._held, self._bytes = self._held, [], 0
        self._room.set()
        return held

    async def close(self) -> None:
        """Let go of the source."""
        await stop(self._filling)
        await close(self._lines)

    async def _fill(self) -> None:
        async for line in self._lines:
            self._held.append(line)
            self._bytes += len(line.text) + LINE_BYTES
            self._came.set()
            if self._bytes >= _BATCH_BYTES:
                self._room.clear()
                await self._room.wait()

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._came.set()


async def next_batch(batches: AsyncIterator[Lines]) -> Lines | None:
    """The next lines; None at the end."""
    return await anext(batches, None)


async def stop(task: asyncio.Task[Lines | None] | asyncio.Task[None]) -> None:
    """Cancel a read and wait for its end, since a generator that runs can't be closed."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
