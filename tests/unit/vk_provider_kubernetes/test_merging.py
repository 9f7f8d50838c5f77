"""Several watches as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from vk_provider_kubernetes.merging import merged


async def stream(*items: int, fault: Exception | None = None) -> AsyncIterator[int]:
    """Some items, then silence or a fault."""
    for item in items:
        yield item
        await asyncio.sleep(0)
    if fault is not None:
        raise fault
    await asyncio.Event().wait()


async def test_items_of_all_streams_come_as_they_arrive() -> None:
    """Silence of one holds none of the others up."""
    found = []
    async with aclosing(merged([stream(1, 2), stream(10), stream()])) as items:
        async for item in items:
            found.append(item)
            if len(found) == 3:
                break

    assert sorted(found) == [1, 2, 10]


async def test_a_fault_of_one_is_the_fault_of_all() -> None:
    """The core opens them again."""
    with pytest.raises(ValueError, match="broken"):
        async for _ in merged([stream(), stream(1, fault=ValueError("broken"))]):
            pass


async def test_the_end_of_one_is_the_end_of_all() -> None:
    """And nothing is left running."""

    async def short() -> AsyncIterator[int]:
        yield 1

    assert [item async for item in merged([short(), stream()])] == [1]
