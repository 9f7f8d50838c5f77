"""Several endless streams as one, in the order of arrival.

Fed by ``provider`` with one watch per namespace.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import TypeVar

from vk_provider.sessions import close

T = TypeVar("T")
_ROOM = 64


async def merged(streams: Sequence[AsyncIterator[T]]) -> AsyncGenerator[T, None]:
    """Items of all of them; ends, or raises, with the first that does."""
    queue: asyncio.Queue[T] = asyncio.Queue(_ROOM)
    pumps = [asyncio.create_task(_pump(stream, queue)) for stream in streams]
    getting: asyncio.Task[T] | None = None
    try:
        while True:
            getting = getting or asyncio.create_task(queue.get())
            await asyncio.wait({getting, *pumps}, return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                item, getting = getting.result(), None
                yield item
                continue
            for pump in pumps:
                if pump.done():
                    pump.result()
                    return
    finally:
        await _stopped([*pumps, *([getting] if getting is not None else [])])


async def _pump(stream: AsyncIterator[T], queue: asyncio.Queue[T]) -> None:
    try:
        async for item in stream:
            await queue.put(item)
    finally:
        await close(stream)


async def _stopped(tasks: Sequence[asyncio.Task[object]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
