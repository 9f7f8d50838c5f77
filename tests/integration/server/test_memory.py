"""Freed memory is given back once for many streams."""

import asyncio

from tests.integration.server.bench import eventually
from vk_provider.server.memory import Trimmer, give_back


async def test_many_wishes_are_one_act() -> None:
    """A while after the first of them."""
    acts: list[float] = []
    trimmer = Trimmer(lambda: acts.append(asyncio.get_running_loop().time()), 0.05)

    for _ in range(100):
        trimmer.soon()
    await eventually(lambda: len(acts) == 1)
    trimmer.soon()
    await eventually(lambda: len(acts) == 2)

    trimmer.soon()
    trimmer.close()
    trimmer.close()
    await asyncio.sleep(0.1)
    assert len(acts) == 2
    give_back()
