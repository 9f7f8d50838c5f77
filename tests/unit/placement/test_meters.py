"""What instances cost, to the second."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from vk_provider.placement import meters as module
from vk_provider.placement.meters import Meters, Now
from vk_provider.placement.readings import Key, Reading
from vk_provider.placement.reports import Report
from vk_provider.placement.spent import Window

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = Key("b", "i")


def now(hours: float, step: float = 0.0) -> Now:
    """So long after the start; ``step``: the calendar went wrong by so many hours."""
    return Now(START + timedelta(hours=hours + step), 1000.0 + hours * 3600)


def reading(
    since: float | None = 0.0, price: float | None = 6.0, until: float | None = None, **more: bool
) -> Reading:
    """An instance that began to be billed so many hours after the start."""
    return Reading(
        KEY,
        "team",
        "uid",
        price,
        None if since is None else now(since).calendar,
        None if until is None else now(until).calendar,
        **more,
    )


def usd(meters: Meters, at: Now, scope: str = "") -> float:
    """The month's sum."""
    return round(meters.usd(Window.MONTH, at, scope), 6)


def test_it_runs_from_its_beginning_while_it_is_listed() -> None:
    """Also the time before the first list, and the time since the last."""
    meters = Meters()
    meters.take("b", [reading()], now(1))
    assert usd(meters, now(1)) == 6
    meters.take("b", [reading()], now(2))
    assert usd(meters, now(2.5)) == usd(meters, now(2.5), "team") == 15
    assert usd(meters, now(2.5), "other") == 0
    assert meters.totals == {("b", "team"): pytest.approx(12)}
    assert meters.rates() == {"b": {"team": 6.0}}


def test_it_stops_when_its_end_was_ordered() -> None:
    """A list that lags may show it for a while; it is not reckoned on."""
    meters = Meters()
    meters.take("b", [reading()], now(1))
    meters.stop(KEY, now(1.5))
    meters.stop(KEY, now(1.6))
    meters.stop(Key("b", "unknown"), now(1.6))
    meters.take("b", [reading()], now(1.6), lag_seconds=3600)
    assert (usd(meters, now(1.6)), meters.rates()) == (9, {})
    meters.take("b", [], now(3))
    assert (usd(meters, now(3)), meters.running) == (9, {})


def test_one_that_outlives_the_order_was_billed_all_the_while() -> None:
    """Unless the list says that it has ended."""
    meters = Meters()
    meters.take("b", [reading()], now(1))
    meters.stop(KEY, now(1))
    meters.take("b", [reading(until=1)], now(2))
    assert usd(meters, now(2)) == 6
    meters.take("b", [reading()], now(3))
    assert usd(meters, now(3)) == 18


def test_one_that_is_gone_was_billed_until_the_list_that_lacks_it() -> None:
    """Should it be shown again it goes on from there, and is not reckoned twice."""
    meters = Meters()
    meters.take("b", [reading()], now(1))
    meters.take("other", [], now(1))
    meters.take("b", [], now(2))
    assert usd(meters, now(5)) == 12
    meters.take("b", [reading()], now(3))
    assert usd(meters, now(3)) == 18


def test_it_ends_by_itself_at_the_time_that_the_backend_tells() -> None:
    """Once; later lists add nothing."""
    meters = Meters()
    meters.take("b", [reading()], now(1))
    for hours in (2, 3):
        meters.take("b", [reading(until=1.5)], now(hours))
        assert usd(meters, now(hours)) == 9


def test_it_is_not_reckoned_before_its_bill_begins() -> None:
    """Where waiting for a machine or an image is free."""
    meters = Meters()
    meters.begin(reading(None), now(0))
    meters.take("b", [reading(None, is_billed=False)], now(1))
    meters.take("b", [reading(1.5)], now(2))
    assert usd(meters, now(2)) == 6  # the start that is told late counts from the last list on
    meters = Meters()
    meters.begin(reading(None), now(0))
    meters.take("b", [reading(1.5)], now(2))
    assert usd(meters, now(2)) == 3


@pytest.mark.parametrize("began", [0.25, -0.25])
def test_a_create_runs_at_once_and_the_backends_own_time_counts(began: float) -> None:
    """Its answer came later, or earlier, than its bill began; and the price was another."""
    meters = Meters()
    meters.begin(reading(None, price=4.0), now(0))
    meters.begin(reading(None, price=9.0), now(0.1))
    assert usd(meters, now(0.5)) == 2
    meters.take("b", [reading(began)], now(1))
    assert usd(meters, now(1)) == 6 * (1 - began)


def test_one_too_young_for_a_list_is_not_taken_for_gone() -> None:
    """Its create's own answer is believed for the list's lag."""
    meters = Meters()
    meters.begin(reading(None), now(0))
    meters.take("b", [], now(0.5), lag_seconds=3600)
    assert usd(meters, now(0.5)) == 3
    meters.take("b", [], now(2), lag_seconds=3600)
    assert (usd(meters, now(9)), meters.running) == (12, {})


def test_one_that_ended_before_any_list_was_billed_until_its_end() -> None:
    """Made and unmade between two lists."""
    meters = Meters()
    meters.begin(reading(None), now(0))
    meters.stop(KEY, now(0.5))
    meters.take("b", [], now(1))
    assert usd(meters, now(1)) == 3


@pytest.mark.parametrize("price", [None, math.nan, -1.0, math.inf])
def test_a_price_that_is_missing_once_has_not_become_nothing(price: float | None) -> None:
    """The last one holds; where there never was one nothing is reckoned."""
    meters = Meters()
    meters.take("b", [reading()], now(1))
    meters.take("b", [reading(price=price)], now(2))
    meters.take("b", [reading(price=price)], now(3))
    assert usd(meters, now(3)) == 18
    meters = Meters()
    meters.take("b", [reading(price=price)], now(1))
    assert (usd(meters, now(1)), meters.rates()) == (0, {})


def test_a_new_price_holds_from_when_it_is_seen() -> None:
    """What was reckoned before stays."""
    meters = Meters()
    meters.take("b", [reading()], now(1))
    meters.take("b", [reading(price=12.0)], now(2))
    meters.take("b", [reading(price=12.0)], now(3))
    assert usd(meters, now(3)) == 24


@pytest.mark.parametrize("step", [-3.0, 3.0])
def test_a_step_of_the_calendar_costs_nothing(step: float) -> None:
    """Durations are the steady clock's."""
    meters = Meters()
    meters.take("b", [reading()], now(1))
    meters.take("b", [reading()], now(2, step))
    assert usd(meters, now(2, step)) == 12


def test_a_beginning_in_the_future_is_none() -> None:
    """A backend's clock may be ahead of ours."""
    meters = Meters()
    meters.take("b", [reading(5)], now(1))
    assert usd(meters, now(1)) == 0


def test_a_bill_replaces_what_was_reckoned() -> None:
    """Hour by hour, and only when the hour is complete if it says less."""
    meters = Meters()
    meters.lines.backends.add("b")
    meters.take("b", [reading()], now(2))
    bill = [Report("i", now(at).calendar, now(at + 1).calendar, 5.5) for at in (0, 1)]
    meters.report("b", bill, final_before=now(1).calendar)
    assert usd(meters, now(2)) == 11.5
    assert meters.totals == {("b", "team"): pytest.approx(11.5)}


def test_a_restart_goes_on_from_what_was_saved() -> None:
    """What still runs is reckoned from then on, what is gone was there until now."""
    saved = {"2026-01": {"": 50.0, "team": 50.0}}
    meters = Meters()
    meters.restore(saved, {"b": {"team": 10.0}, "gone": {"": 1.0}}, now(1).calendar)
    meters.take("b", [reading()], now(2))
    assert usd(meters, now(2)) == 50 + 6 + 4
    meters.take("b", [reading()], now(3))
    assert usd(meters, now(3)) == 66


def test_a_restart_within_the_same_moment_adds_nothing() -> None:
    """Nor does a backend of which nothing ran."""
    meters = Meters()
    meters.restore({}, {"b": {"team": 10.0}}, now(1).calendar)
    meters.take("b", [], now(1))
    meters.take("other", [], now(2))
    assert usd(meters, now(2)) == 0


def test_what_is_remembered_of_those_that_are_gone_is_bounded() -> None:
    """The oldest is forgotten first."""
    meters = Meters()
    many = module.MOST_CLOSED + 1
    meters.take("b", [Reading(Key("b", str(at)), "", "", 1.0, START) for at in range(many)], now(1))
    meters.take("b", [], now(1))
    assert len(meters._closed) == module.MOST_CLOSED
