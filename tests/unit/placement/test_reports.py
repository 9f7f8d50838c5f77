"""A provider's bill against what was reckoned."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from vk_provider.placement.reports import KEPT_HOURS, Lines, Report, hour_of

TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
KEY = ("runpod", "a")


def lines() -> Lines:
    """Half an hour before and half an hour after eleven, at a dollar each."""
    found = Lines({"runpod"})
    found.note(KEY, "team", 2.0, TEN + HOUR / 2, TEN + 1.5 * HOUR)
    return found


def report(usd: float, begin: datetime = TEN) -> Report:
    """One hour of the instance."""
    return Report("a", begin, begin + HOUR, usd)


def test_the_difference_to_the_same_hour_is_booked_once() -> None:
    """In both directions when the hour's bill is complete."""
    found = lines()
    assert found.correct("runpod", report(1.25), True) == ("team", 0.25)
    assert found.correct("runpod", report(1.25), True) is None
    assert found.correct("runpod", report(0.5, TEN + HOUR), True) == ("team", -0.5)


def test_an_hour_under_way_is_only_corrected_upwards() -> None:
    """Its bill is not complete: less says nothing."""
    found = lines()
    assert found.correct("runpod", report(0.5), False) is None
    assert found.correct("runpod", report(1.5), False) == ("team", 0.5)


def test_an_hour_that_was_not_reckoned_is_booked_in_full() -> None:
    """Storage of an instance that computes no more, for one."""
    assert lines().correct("runpod", report(0.1, TEN + 5 * HOUR), True) == ("team", 0.1)


@pytest.mark.parametrize("usd", [math.nan, math.inf, -1.0])
def test_what_is_no_money_is_no_report(usd: float) -> None:
    """Nor is what belongs to an instance that is not ours."""
    assert lines().correct("runpod", report(usd), True) is None
    assert lines().correct("other", report(1.5), True) is None


def test_what_was_before_a_restart_is_left_as_it_is() -> None:
    """It is in the sum that was saved, and not known by instance any more."""
    found = lines()
    found.begin_at(TEN + HOUR / 4)
    assert found.correct("runpod", report(5.0), True) is None
    assert found.correct("runpod", report(5.0, TEN + HOUR), True) is not None


def test_lines_are_not_kept_for_ever() -> None:
    """Without length an amount belongs to its own hour."""
    found = lines()
    found.note(KEY, "team", 0.0, TEN, TEN)
    found.prune(TEN + HOUR * (KEPT_HOURS + 0.5))
    assert found.correct("runpod", report(9.0, TEN + HOUR), True) == ("team", 8.0)
    found.prune(TEN + HOUR * (KEPT_HOURS + 9))
    assert found.correct("runpod", report(9.0), True) is None


def test_the_hour_of_a_moment_is_utc() -> None:
    """As bills are."""
    assert hour_of(TEN + HOUR / 3) == TEN
