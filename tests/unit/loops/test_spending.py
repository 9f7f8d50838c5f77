"""The money of a node: what is reserved, what runs, what is over, what is saved."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vk_provider.loops.shell import Shell
from vk_provider.loops.spend_memory import SAVE_SECONDS, SpendMemory
from vk_provider.loops.spending import Spending
from vk_provider.metrics import Metrics
from vk_provider.placement.budget import BudgetLimits, Caps, Share
from vk_provider.placement.reports import Report
from vk_provider.placement.saved import Saved, parse, render
from vk_provider.pods.types import (
    Candidate,
    InstancePhase,
    InstanceRef,
    Observation,
    Offer,
    PodUID,
    Stamp,
)
from vk_provider.provider import ProviderTraits

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
A, B = PodUID("a"), PodUID("b")
TRAITS = ProviderTraits(list_lag_seconds=0.0)


class Hands:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        """The calendar."""
        return NOON + timedelta(seconds=self.seconds)

    def steady(self) -> float:
        """The other one."""
        return self.seconds


class Till:
    """A node's money with its clock and its metrics."""

    def __init__(self, **limits: Any) -> None:
        self.clock = Hands()
        self.metrics = Metrics()
        self.shell = Shell(self.clock, self.metrics, node="n")
        given = BudgetLimits(**limits)
        self.spending = Spending(given, self.shell)
        self.memory = SpendMemory(self.spending)

    def show(self, *prices: float) -> None:
        """A list with instances that began at noon."""
        self.spending.listed("fake", TRAITS, [seen(str(at), p) for at, p in enumerate(prices)])

    def shares(self) -> list[Share]:
        """Every cap with what is spent of it."""
        return list(self.spending.budget.shares(self.spending.now()))

    def value(self, name: str, **labels: str) -> float | None:
        """A metric's value."""
        return self.metrics.registry.get_sample_value(
            f"vk_provider_{name}", {"node": "n", **labels}
        )


def offer(price: float | None) -> Candidate:
    """An offer at this price."""
    return Candidate("fake", Offer("o", usd_per_hour=price))


def seen(name: str, price: float) -> Observation:
    """An instance of a pod."""
    stamp = Stamp("c", "n", "team", name, PodUID(name))
    return Observation(
        stamp, InstanceRef(name), InstancePhase.RUNNING, created_at=NOON, usd_per_hour=price
    )


def test_without_a_budget_nothing_is_over_and_nothing_saved() -> None:
    """What is spent is counted all the same."""
    till = Till()
    till.clock.seconds = 3600
    till.show(1000.0)
    assert till.spending.over(offer(1e9), "team") == ""
    assert till.spending.words([offer(1.0)], "team") == ""
    assert till.memory.line() is None
    assert till.value("spend_usd_total", backend="fake", namespace="team") == 1000


def test_a_namespace_that_costs_nothing_for_long_has_no_series() -> None:
    """Namespaces come and go; one that comes back is counted from nothing, as after a restart."""
    till = Till()
    for hours, prices in ((1, [2.0]), (2, []), (900, [])):
        till.clock.seconds = 3600.0 * hours
        till.show(*prices)
    assert till.value("spend_usd_total", backend="fake", namespace="team") is None
    till.spending.created(A, "team", offer(1.0), InstanceRef("back"))
    till.clock.seconds += 3600
    till.show()
    assert till.value("spend_usd_total", backend="fake", namespace="team") == 1


def test_a_create_reserves_until_it_has_an_instance() -> None:
    """Many pods at once don't spend the same dollar twice."""
    till = Till(node=Caps(usd_per_hour=10.0))
    till.spending.reserve(A, "team", offer(6))
    assert till.spending.over(offer(6), "team") != ""
    till.spending.created(A, "team", offer(6), InstanceRef("0"))
    assert till.spending.over(offer(6), "team") != ""
    assert till.spending.over(offer(4), "team") == ""
    till.spending.ended("fake", InstanceRef("0"))
    assert till.spending.over(offer(10), "team") == ""


def test_a_create_that_made_nothing_gives_its_money_back() -> None:
    """So does one that a list shows: its meter runs instead."""
    till = Till(node=Caps(usd_per_hour=10.0))
    till.spending.reserve(A, "team", offer(6))
    till.spending.release(A)
    assert till.spending.over(offer(10), "team") == ""
    till.spending.reserve(PodUID("0"), "team", offer(6))
    till.show(6.0)
    assert till.spending.over(offer(4), "team") == ""


def test_an_instance_that_was_never_reserved_is_still_counted() -> None:
    """A create whose reservation a list has ended already."""
    till = Till(node=Caps(usd_per_hour=10.0))
    till.spending.created(B, "team", offer(6), InstanceRef("late"))
    assert till.spending.budget.rate() == 6.0


def test_an_offer_without_a_price_counts_nothing_or_what_is_configured() -> None:
    """Where a backend has no prices, capacity is the cap; unless somebody says what it costs."""
    free, reckoned = (
        Till(node=Caps(usd_per_hour=0.0)),
        Till(node=Caps(usd_per_hour=1.0), unpriced_usd_per_hour=0.75),
    )
    for till in (free, reckoned):
        till.spending.reserve(A, "team", offer(None))
    assert free.spending.over(offer(None), "team") == ""
    assert reckoned.spending.over(offer(None), "team") != ""


@pytest.mark.parametrize("price", [math.nan, math.inf, -1.0])
def test_a_price_that_makes_no_sense_is_never_paid(price: float) -> None:
    """It is a mistake of somebody's, and a budget must not rest on it."""
    till = Till(node=Caps(usd_per_hour=100.0))
    assert till.spending.over(offer(price), "team").endswith("makes no sense")


def test_the_words_name_the_budget_and_the_cheapest_offer() -> None:
    """For the pod's message and the door's."""
    till = Till(node=Caps(usd_per_hour=5.0))
    till.show(6.0)
    assert till.spending.words([offer(3), offer(2)], "team") == (
        "the node's budget of 5.00 USD/h has 0.00 left, and the cheapest offer costs 2.00 USD/h"
    )
    assert till.spending.words([], "team") == ""


def test_at_a_cap_somebody_must_go() -> None:
    """Before the money is gone, and not for the hour's rate."""
    till = Till(node=Caps(usd_per_hour=60.0, usd_per_day=6.0))
    till.clock.seconds = 1800
    till.show(6.0)
    assert till.spending.dismissed == {}
    till.clock.seconds = 3590
    till.show(6.0)
    assert till.spending.dismissed == {PodUID("0"): "the node's budget of 6.00 USD/day is spent"}
    assert (
        till.spending.closed(0.1) == "the node's budget of 6.00 USD/day is spent but for what runs"
    )
    remaining = till.value("budget_remaining_usd", namespace="", period="day")
    assert remaining == pytest.approx(6.0 / 360)


def test_a_bill_replaces_what_was_reckoned_and_the_counter_never_falls() -> None:
    """It rises again when the bill has caught up."""
    till = Till(node=Caps(usd_per_day=100.0))
    till.spending.budget.meters.lines.backends.add("fake")
    till.clock.seconds = 3 * 3600
    till.show(6.0)
    bill = [Report("0", NOON, NOON + timedelta(hours=1), 5.0)]
    till.spending.reported("fake", bill)
    assert till.value("budget_spent_usd", namespace="", period="day") == 17
    assert till.value("spend_usd_total", backend="fake", namespace="team") == 18
    till.clock.seconds += 1800
    till.show(6.0)
    assert till.value("spend_usd_total", backend="fake", namespace="team") == 20


def test_the_spend_is_saved_rarely_and_at_rest_not_at_all() -> None:
    """After five minutes, or when a hundredth of a cap was spent since."""
    till = Till(node=Caps(usd_per_month=1000.0))
    first = till.memory.line()
    assert first is not None
    till.clock.seconds = SAVE_SECONDS + 1
    assert till.memory.line() == first
    till.show(6.0)
    second = till.memory.line()
    assert second != first
    till.clock.seconds += 10
    till.show(6.0)
    assert till.memory.line() == second
    assert till.memory.line(at_once=True) != second
    till.clock.seconds += 2 * 3600
    till.show(6.0)
    saved = parse(till.memory.line() or "")
    assert saved is not None
    assert saved.rates == {"fake": {"team": 6.0}}


def test_a_hundredth_of_a_cap_is_saved_at_once() -> None:
    """A crash must not forget much."""
    till = Till(node=Caps(usd_per_day=1.0, usd_per_hour=100.0))
    till.show(6.0)
    first = till.memory.line()
    till.clock.seconds = 10
    till.show(6.0)
    assert till.memory.line() != first


def test_a_restart_takes_up_what_was_saved_once() -> None:
    """A Node that was made anew later knows less than we do. Money from the future is spent, too:
    some clock was wrong."""
    text = render(Saved(NOON, {"2026-01": {"": 500.0}}))
    till = Till(node=Caps(usd_per_month=1000.0))
    till.memory.restore(text)
    assert till.memory.line() == text
    [share] = till.shares()
    assert share.usd == 500
    till.memory.restore(render(Saved(NOON, {"2026-01": {"": 900.0}})))
    assert [each.usd for each in till.shares()] == [500]
    ahead = Till(node=Caps(usd_per_month=1000.0))
    ahead.memory.restore(render(Saved(NOON + timedelta(days=1), {"2026-01": {"": 500.0}})))
    assert [each.usd for each in ahead.shares()] == [500]
    without = Till()
    without.memory.restore(text)
    assert without.memory.line() is None
