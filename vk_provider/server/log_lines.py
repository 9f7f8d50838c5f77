"""A backend's log lines as one stream that always ends: with the container, or with the client.

Nothing is read ahead of the client but a tail, which is bounded.
Fed by ``SupportsLogs.read_logs``; feeds ``logs``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace

from vk_provider.pods.types import LogLine, LogOptions
from vk_provider.wire.logs import Joint, LogPipe, Tail

Read = Callable[[LogOptions], AsyncIterator[LogLine]]
"""Reads one container's log of one instance from its backend."""


def options_for_backend(options: LogOptions) -> LogOptions:
    """What a backend is asked: timestamps and the byte limit are none of its business."""
    return replace(options, timestamps=False, limit_bytes=None)


async def log_lines(
    read: Read, options: LogOptions, is_over: Callable[[], bool], quiet_seconds: float
) -> AsyncGenerator[LogLine, None]:
    """The lines that the options ask for, even of a backend that honours none of them."""
    asked = options_for_backend(options)
    if asked.tail_lines is None:
        async with aclosing(until_over(read(asked), is_over, quiet_seconds)) as lines:
            async for line in lines:
                yield line
        return
    tail, joint = await _read_tail(read, asked)
    for line in tail.lines:
        yield line
    if not asked.follow:
        return
    rest = replace(asked, tail_lines=None, since=joint.last or asked.since)
    async with aclosing(until_over(read(rest), is_over, quiet_seconds)) as lines:
        async for line in lines:
            if joint.is_new(line):
                yield line


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
    async with aclosing(until_over(read(first))) as lines:
        async for line in lines:
            if pipe.is_wanted(line):
                tail.push(line)
                joint.note(line)
    return tail, joint


async def until_over(
    lines: AsyncIterator[LogLine],
    is_over: Callable[[], bool] | None = None,
    quiet_seconds: float | None = None,
) -> AsyncGenerator[LogLine, None]:
    """Pass lines on until they end, or until they have been quiet twice in a row while ``is_over``
    says that no more are to come. Closes the source however it is left."""
    waiting: asyncio.Task[LogLine | None] | None = None
    try:
        while True:
            waiting = asyncio.create_task(next_line(lines))
            quiet = 0
            while not (await asyncio.wait({waiting}, timeout=quiet_seconds))[0]:
                quiet = quiet + 1 if is_over is not None and is_over() else 0
                if quiet == 2:
                    return
            line = waiting.result()
            if line is None:
                return
            yield line
    finally:
        await stop(waiting)
        close = getattr(lines, "aclose", None)
        if close is not None:
            await close()


async def next_line(lines: AsyncIterator[LogLine]) -> LogLine | None:
    """The next line; None at the end."""
    return await anext(lines, None)


async def stop(task: asyncio.Task[LogLine | None] | None) -> None:
    """Cancel a read and wait for its end, since a generator that runs can't be closed."""
    if task is None:
        return
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
