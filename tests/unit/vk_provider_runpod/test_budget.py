"""The rate budget, with a clock of the test's."""

from __future__ import annotations

import asyncio

import pytest
from vk_provider_runpod.budget import Budget

from vk_provider.faults import ThrottledError


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def spend(budget: Budget, calls: int, *, creates: bool = False) -> None:
    """That many calls, none of which may wait."""
    for _ in range(calls):
        async with asyncio.timeout(0.05):
            await budget.spend("test", creates=creates)


async def test_a_minutes_calls_may_come_at_once() -> None:
    """And the next one comes too soon by far."""
    budget = Budget(4, Clock())
    await spend(budget, 4)

    with pytest.raises(ThrottledError, match="not sent") as raised:
        await budget.spend("test")

    assert raised.value.retry_after_seconds == pytest.approx(15)


async def test_calls_come_back_with_time() -> None:
    """Evenly, and never more than a minute's."""
    clock = Clock()
    budget = Budget(60, clock)
    await spend(budget, 60)

    clock.now += 3
    await spend(budget, 3)
    clock.now += 3600
    await spend(budget, 60)

    with pytest.raises(TimeoutError):
        await spend(budget, 1)


async def test_creates_leave_a_reserve_for_the_orders_that_stop_billing() -> None:
    """A tenth."""
    budget = Budget(100, Clock())
    await spend(budget, 90, creates=True)

    with pytest.raises(TimeoutError):
        await spend(budget, 1, creates=True)
    await spend(budget, 8)


async def test_a_throttled_answer_closes_the_budget_for_as_long_as_it_says() -> None:
    """For every call, whichever met it."""
    clock = Clock()
    budget = Budget(600, clock)

    budget.learn(429, {"Retry-After": "12"})

    with pytest.raises(ThrottledError):
        await budget.spend("test")
    clock.now += 12
    await spend(budget, 1)


async def test_a_used_up_window_closes_it_without_a_429() -> None:
    """The header comes with successes, so that nobody has to meet one."""
    clock = Clock()
    budget = Budget(600, clock)
    budget.learn(200, {"RateLimit": '"minute";r=5;t=40'})
    await spend(budget, 1)

    budget.learn(200, {"RateLimit": '"minute";r=0;t=40'})

    with pytest.raises(ThrottledError):
        await budget.spend("test")


async def test_a_429_without_a_wish_closes_it_for_a_moment() -> None:
    """The call after next waits, and is not refused."""
    clock = Clock()
    budget = Budget(600, clock)

    budget.learn(429, {})

    with pytest.raises(TimeoutError):
        await spend(budget, 1)
    clock.now += 1
    await spend(budget, 1)


async def test_a_create_waits_its_turn_where_a_list_is_refused() -> None:
    """A list comes again with the next tick; a create that fails fails its pod."""
    budget = Budget(4, Clock())
    await spend(budget, 4)

    with pytest.raises(TimeoutError):
        await spend(budget, 1, creates=True)
    with pytest.raises(ThrottledError):
        await spend(budget, 1)


async def test_queueing_creates_hold_up_no_delete() -> None:
    """However many pods a Deployment has."""
    budget = Budget(100, Clock())
    await spend(budget, 90, creates=True)
    queue = [asyncio.create_task(budget.spend("create", creates=True)) for _ in range(50)]
    await asyncio.sleep(0)

    await spend(budget, 9)

    for waiting in queue:
        waiting.cancel()
    assert await asyncio.gather(*queue, return_exceptions=True)


async def test_a_create_whose_turn_would_come_too_late_is_throttled() -> None:
    """The core tries again, or elsewhere."""
    budget = Budget(600, Clock())
    budget.learn(429, {"Retry-After": "90"})

    with pytest.raises(ThrottledError):
        await budget.spend("test", creates=True)
