"""A month of random load at twice the budget: the cap holds, and the bill is ours to the cent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.integration.budget.load import DAY, Guest, demand_usd, guests, play
from tests.integration.budget.month import Month
from vk_provider.faults import UnavailableError

DAYS = 31
TICK = 1200.0
CAP = 3000.0
CLOUDS: dict[str, dict[str, Any]] = {
    "one": {
        "offers": [
            {"name": "l40s", "gpuType": "L40S", "usdPerHour": 0.99, "capacity": 12},
            {"name": "a100", "gpuType": "A100", "usdPerHour": 1.74, "capacity": 8},
        ],
        "startAfterSeconds": 45,
    },
    "two": {"offers": [{"name": "h100", "gpuType": "H100", "usdPerHour": 2.99, "capacity": 6}]},
}


async def test_a_month_of_twice_the_load_spends_the_cap_and_never_more() -> None:
    """Between 95 and 100 percent; at no tick is it passed by more than that tick's cost."""
    load = guests(1, DAYS, per_day=30, hours=6.0)
    assert demand_usd(load, 0.99, DAYS * DAY) >= 2 * CAP

    async with Month(CLOUDS, tickSeconds=TICK, placement={"budget": {"usdPerMonth": CAP}}) as month:
        playing = asyncio.ensure_future(play(load, month.has_room, month.bind, month.delete))
        over = []
        while month.seconds < DAYS * DAY - 3 * 3600:
            spent, rate = month.billed(), month.rate()
            over += [(month.seconds, spent)] if spent > CAP + rate * TICK / 3600 else []
            await asyncio.sleep(TICK if rate and spent > 0.95 * CAP else 3 * 3600)
        spent = month.billed(0, DAYS * DAY)
        playing.cancel()

        assert over == []
        assert 0.95 * CAP <= spent <= CAP
        assert month.value("budget_spent_usd", period="month") == pytest.approx(spent, abs=0.005)
        assert month.value("spend_usd_total") == pytest.approx(month.billed(), abs=0.005)


async def test_restarts_days_and_namespaces_within_the_caps() -> None:
    """Killed and stopped, with instances that vanish: each cap holds, and the bill is the clouds'
    own, since they report it."""
    caps = {"usdPerDay": 120.0, "perNamespace": {"team-a": {"usdPerDay": 20.0}}}
    clouds = {name: {**cloud, "reportsSpend": True} for name, cloud in CLOUDS.items()}
    days, tick = 3, 60.0
    load = guests(7, days, per_day=100, hours=3.0, dying=0.2)
    async with Month(clouds, tickSeconds=tick, placement={"budget": caps}) as month:
        playing = asyncio.ensure_future(play(load, month.has_room, month.bind, month.delete))
        for day in range(days):
            await asyncio.sleep(8 * 3600)
            await month.stop(cleanly=bool(day % 2))
            await asyncio.sleep(100)
            await month.start()
            await asyncio.sleep((day + 1) * DAY - month.seconds)
            spent = month.billed(day * DAY, (day + 1) * DAY)
            team = month.billed(day * DAY, (day + 1) * DAY, "team-a")
            assert 0.95 * 120 <= spent <= 120.0
            assert 0.9 * 20 <= team <= 20.0
        playing.cancel()
        for guest in list(month.come):
            month.delete(guest)
        await asyncio.sleep(5 * 3600)
        reckoned = month.value("budget_spent_usd", period="day", namespace="")
        assert reckoned == pytest.approx(month.billed(days * DAY), abs=0.005)


async def test_the_clouds_own_bill_takes_the_place_of_what_was_reckoned() -> None:
    """Instances vanish between two lists: only the bill knows when, and by the cent."""
    clouds = {name: {**cloud, "reportsSpend": True} for name, cloud in CLOUDS.items()}
    load = guests(3, 2, per_day=60, hours=2.0, dying=0.5)
    placement = {"budget": {"usdPerMonth": 1e6}}
    async with Month(clouds, tickSeconds=600, placement=placement) as month:
        await play(load, month.has_room, month.bind, month.delete)
        await asyncio.sleep(12 * 3600)
        for guest in list(month.come):
            month.delete(guest)
        await asyncio.sleep(8 * 3600)
        reckoned = month.value("budget_spent_usd", period="month")
        assert month.rate() == 0.0
        assert reckoned == pytest.approx(month.billed(), abs=0.005)


async def test_a_bill_that_can_not_be_read_leaves_what_was_reckoned() -> None:
    """It is asked again, and complained of once."""
    clouds = {"one": {**CLOUDS["one"], "reportsSpend": True}}
    placement = {"budget": {"usdPerMonth": 1e6}}
    async with Month(clouds, tickSeconds=60, placement=placement) as month:
        cloud = month.clouds["one"]
        cloud.script.fail_always("spend", UnavailableError("503"))
        month.bind(Guest("web", 0.0, 1e9, 1, "default", leaves=True))
        await asyncio.sleep(1800)
        assert cloud.calls["spend"] >= 5
        cloud.script.heal()
        await asyncio.sleep(1800)
        reckoned = month.value("budget_spent_usd", period="month")
        assert reckoned == pytest.approx(month.billed(), abs=0.02)
