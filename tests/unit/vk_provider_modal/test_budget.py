"""Creates at the rate that Modal takes."""

from __future__ import annotations

import asyncio

import pytest
from vk_provider_modal.budget import CreateBudget


@pytest.mark.looptime
async def test_a_burst_goes_at_once_and_the_rest_in_turn() -> None:
    """Ten of twenty wait, half a second each."""
    loop = asyncio.get_running_loop()
    budget = CreateBudget(2, 10, loop.time)

    await asyncio.gather(*(budget.spend() for _ in range(20)))

    assert loop.time() == pytest.approx(5, abs=0.1)


@pytest.mark.looptime
async def test_a_rest_fills_the_bucket_and_no_more() -> None:
    """However long it was."""
    loop = asyncio.get_running_loop()
    budget = CreateBudget(1, 2, loop.time)
    await asyncio.sleep(1000)
    before = loop.time()

    for _ in range(3):
        await budget.spend()

    assert loop.time() - before == pytest.approx(1, abs=0.1)
