"""What exec and attach of a provider are made of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from vk_provider.sessions import USUAL_SIZE, TerminalSizes, beside, close, closing, write_in_chunks
from vk_provider.streams import CHUNK_BYTES, TerminalSize

FIRST, SECOND = TerminalSize(120, 40), TerminalSize(100, 30)


class Client:
    """A client at a terminal."""

    def __init__(self, *sizes: TerminalSize) -> None:
        self.sizes = sizes
        self.seen: list[bytes] = []

    async def stdin(self) -> AsyncIterator[bytes]:
        yield b"exit\n"

    async def write_stdout(self, chunk: bytes) -> None:
        self.seen.append(chunk)

    async def write_stderr(self, chunk: bytes) -> None:
        self.seen.append(chunk)

    async def resizes(self) -> AsyncIterator[TerminalSize]:
        for size in self.sizes:
            yield size


class Numbers:
    """The least that is an iterator."""

    def __aiter__(self) -> Numbers:
        return self

    async def __anext__(self) -> int:
        return 1


async def test_what_is_beside_a_block_ends_with_it() -> None:
    """However the block ends, and whatever became of it."""
    ended: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waits")

    async def fails() -> None:
        raise ValueError("of no use any more")

    async def block() -> None:
        async with beside(waits(), fails()):
            await asyncio.sleep(0)
            raise KeyError

    with pytest.raises(KeyError):
        await block()

    assert ended == ["waits"]


async def test_nothing_may_be_beside_a_block() -> None:
    """A session without a terminal has no sizes to follow."""
    async with beside():
        pass


async def test_what_was_read_from_is_let_go() -> None:
    """Also in the middle; an iterator that can't be closed is left as it is."""
    ended: list[str] = []

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            ended.append("endless")

    async with closing(endless()) as items:
        assert await anext(items) == 1
    await close(Numbers())

    assert ended == ["endless"]


async def test_much_is_written_piece_by_piece() -> None:
    """So that little is held."""
    client = Client()

    await write_in_chunks(client.write_stdout, b"x" * (CHUNK_BYTES + 1))
    await write_in_chunks(client.write_stdout, b"")

    assert [len(chunk) for chunk in client.seen] == [CHUNK_BYTES, 1]


async def test_sizes_come_in_their_order() -> None:
    """The first one to begin with."""
    sizes = TerminalSizes()

    await sizes.collect(Client(FIRST, SECOND))

    assert (await sizes.first(), await sizes.next()) == (FIRST, SECOND)


async def test_a_client_that_says_no_size_gets_the_usual_one() -> None:
    """A program must have some."""
    assert await TerminalSizes().first(seconds=0) == USUAL_SIZE
