"""What streams of a provider are made of, whatever its backend speaks.

Fed by providers with the client's side of a stream, and by those who read from providers; rests on
nothing but the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from vk_provider.streams import CHUNK_BYTES, ContainerIO, TerminalSize

FIRST_SIZE_SECONDS = 0.25
USUAL_SIZE = TerminalSize(80, 24)

Item = TypeVar("Item")


@asynccontextmanager
async def beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do this as long as the block takes, and no longer. What went wrong with it no longer
    matters then."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def closing(iterator: AsyncIterator[Item]) -> AsyncIterator[AsyncIterator[Item]]:
    """Read within the block, then let go of what gave the items."""
    try:
        yield iterator
    finally:
        await close(iterator)


async def close(iterator: AsyncIterator[Any]) -> None:
    """Let go of an iterator. The seam asks for no more than one; nearly all are generators, which
    can be closed."""
    aclose = getattr(iterator, "aclose", None)
    if aclose is not None:
        await aclose()


async def write_in_chunks(write: Callable[[bytes], Awaitable[None]], payload: bytes) -> None:
    """Hand on ``payload``, at most :data:`.streams.CHUNK_BYTES` at once."""
    for at in range(0, len(payload), CHUNK_BYTES):
        await write(payload[at : at + CHUNK_BYTES])


class TerminalSizes:
    """The sizes of a client's terminal, collected from the session's beginning: the first is
    wanted before there is a command to be told of the next ones."""

    def __init__(self) -> None:
        self._sizes: asyncio.Queue[TerminalSize] = asyncio.Queue()

    async def collect(self, io: ContainerIO) -> None:
        """Take what the client says, as long as it says something."""
        async for size in io.resizes():
            self._sizes.put_nowait(size)

    async def first(self, seconds: float = FIRST_SIZE_SECONDS) -> TerminalSize:
        """The size to begin with: the client's, or the usual one if it says none in time."""
        with suppress(TimeoutError):
            return await asyncio.wait_for(self.next(), seconds)
        return USUAL_SIZE

    async def next(self) -> TerminalSize:
        """The next size, when there is one."""
        return await self._sizes.get()
