"""Who may come in, and who must go, for a cap to hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vk_provider.placement.budget import (
    ORDER_SECONDS,
    RUN_ON_SECONDS,
    Budget,
    BudgetLimits,
    Caps,
    name_of,
)
from vk_provider.placement.meters import Meters, Now
from vk_provider.placement.readings import Key, Reading
from vk_provider.placement.spent import NODE

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
HOUR = 3600.0


def now(seconds: float = 0.0) -> Now:
    """So long after noon."""
    return Now(NOON + timedelta(seconds=seconds), 1000.0 + seconds)


def budget(*prices: float, namespace: str = "team", **limits: Any) -> Budget:
    """Instances at these prices per hour, just begun."""
    given = BudgetLimits(**limits)
    made = Budget(given, Meters(), tick_seconds=10.0, grace=lambda uid: 30.0)
    for number, price in enumerate(prices):
        made.meters.begin(Reading(Key("b", str(number)), namespace, f"pod-{price}", price), now())
    return made


def test_without_a_cap_nothing_is_over() -> None:
    """Nor must anybody go."""
    free = budget(1000.0)
    assert not free.limits.any
    assert (free.over(1e9, "team", now()), free.closed(1e9, now())) == ("", "")
    assert dict(free.to_end(now())) == {}
    assert list(free.shares(now())) == []


def test_what_runs_and_what_is_about_to_counts_per_hour() -> None:
    """A cap may be filled to the cent, and no further."""
    hourly = budget(6.0, node=Caps(usd_per_hour=10.0))
    assert hourly.over(4.0, "team", now()) == ""
    hourly.reserved["x"] = ("other", 1.0)
    assert hourly.over(4.0, "team", now()) == "the node's budget of 10.00 USD/h has 3.00 left"
    assert dict(hourly.to_end(now())) == {}
    assert hourly.closed(3.0, now()) == ""
    assert hourly.closed(3.1, now()) == "the node's budget of 10.00 USD/h is taken by what runs"


def test_one_whose_end_was_ordered_makes_room_per_hour() -> None:
    """It runs no more as far as we may know."""
    hourly = budget(6.0, node=Caps(usd_per_hour=10.0))
    hourly.meters.stop(Key("b", "0"), now(1))
    assert hourly.over(10.0, "team", now(1)) == ""


def test_nothing_is_let_in_that_could_not_run_for_a_while() -> None:
    """With all that runs already: the door closes before the money is gone."""
    worth = 6.0 * (RUN_ON_SECONDS + 10 + ORDER_SECONDS) / HOUR
    daily = budget(3.0, node=Caps(usd_per_day=worth))
    assert daily.over(3.0, "team", now()) == ""
    assert daily.over(3.1, "team", now()).startswith("the node's budget of")
    assert daily.closed(0.01, now()) == ""
    assert (
        daily.closed(0.01, now(640)) == f"{name_of(NODE, 'day', worth)} is spent but for what runs"
    )


def test_at_the_end_of_a_period_only_what_is_left_of_it_counts() -> None:
    """What comes after midnight is paid from the next day's money."""
    daily = budget(node=Caps(usd_per_day=0.1))
    before_midnight = now(12 * HOUR - 30)
    assert daily.over(6.0, "team", now()) != ""
    assert daily.over(6.0, "team", before_midnight) == ""


def test_a_namespaces_cap_is_its_own() -> None:
    """It keeps its own pods out, and closes no door."""
    both = budget(6.0, namespaces={"team": Caps(usd_per_hour=7.0), "empty": Caps()})
    assert (
        both.over(2.0, "team", now()) == "the budget of namespace team of 7.00 USD/h has 1.00 left"
    )
    assert both.over(2.0, "other", now()) == ""
    spent = budget(6.0, namespaces={"team": Caps(usd_per_day=0.05)})
    assert spent.closed(0.01, now(60)) == ""
    assert list(spent.to_end(now(60))) == ["pod-6.0"]


def test_a_cap_of_nothing_lets_nothing_in_that_costs_anything() -> None:
    """And is spent from the beginning."""
    none = budget(node=Caps(usd_per_month=0.0))
    assert none.over(0.01, "team", now()) == "the node's budget of 0.00 USD/month has 0.00 left"
    assert none.closed(0.01, now()) != ""
    assert [each.share for each in none.shares(now())] == [1.0]


def test_the_dearest_go_first_and_only_as_many_as_must() -> None:
    """What is left must pay for the others until the next look and to their ends."""
    cap = 6.0
    daily = budget(1.0, 30.0, 5.0, node=Caps(usd_per_day=cap))
    assert dict(daily.to_end(now(60))) == {}
    # A cent per second: after 555 s 0.45 are left. All to the next look and their ends cost 0.50.
    found = daily.to_end(now(555))
    assert list(found) == ["pod-30.0"]
    assert found["pod-30.0"] == "the node's budget of 6.00 USD/day is spent"
    assert list(daily.to_end(now(560))) == ["pod-30.0", "pod-5.0", "pod-1.0"]


def test_those_on_their_way_out_and_those_that_cost_nothing_are_left() -> None:
    """An order that was given needs no second one."""
    daily = budget(30.0, 0.0, node=Caps(usd_per_day=1.0))
    daily.meters.stop(Key("b", "0"), now(300))
    assert dict(daily.to_end(now(300))) == {}


def test_whoever_only_wants_the_door_closed_gets_that() -> None:
    """``onExceeded: keep``: what runs runs on."""
    kept = budget(30.0, node=Caps(usd_per_day=1.0), drains=False)
    assert dict(kept.to_end(now(300))) == {}
    assert kept.closed(0.01, now(300)) != ""


def test_a_period_that_ends_before_an_instance_could_is_waited_for() -> None:
    """Its cost after midnight is another day's."""
    daily = budget(36.0, node=Caps(usd_per_day=431.99))
    assert list(daily.to_end(now(12 * HOUR - 10))) == ["pod-36.0"]
    daily = budget(36.0, node=Caps(usd_per_day=432.01))
    assert list(daily.to_end(now(12 * HOUR - 10))) == []


def test_each_cap_shows_what_is_spent_of_it() -> None:
    """For people and metrics; the hour's is what runs now."""
    caps = Caps(usd_per_hour=12.0, usd_per_day=12.0, usd_per_month=60.0)
    shown = budget(6.0, node=caps, namespaces={"other": Caps(usd_per_day=1.0)})
    shares = list(shown.shares(now(HOUR)))
    assert [(each.scope, each.period, round(each.usd, 6), each.key) for each in shares] == [
        ("", "hour", 6.0, "rate"),
        ("", "day", 6.0, "2026-01-15"),
        ("", "month", 6.0, "2026-01"),
        ("other", "day", 0.0, "2026-01-15"),
    ]
    assert [each.period for each in shown.warnings(now(2 * HOUR))] == ["day"]
    assert [each.words for each in shares[:2]] == [
        "50 % of the node's budget of 12.00 USD/h is taken",
        "50 % of the node's budget of 12.00 USD/day is spent",
    ]


@pytest.mark.parametrize("caps", [Caps(1.0), Caps(None, 1.0), Caps(None, None, 1.0)])
def test_any_one_cap_makes_a_budget(caps: Caps) -> None:
    """Of the node, or of a namespace."""
    assert BudgetLimits(node=caps).any
    assert BudgetLimits(namespaces={"team": caps}).any
    assert not BudgetLimits(namespaces={"team": Caps()}).any
