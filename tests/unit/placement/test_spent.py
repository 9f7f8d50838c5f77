"""Sums by calendar day and month."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from vk_provider.placement.spent import Spent, Window


def at(text: str) -> datetime:
    """A moment, UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "day", "month"),
    [
        ("2026-01-31T23:59:59", "2026-02-01", "2026-02-01"),
        ("2026-12-31T12:00:00", "2027-01-01", "2027-01-01"),
        ("2028-02-28T12:00:00", "2028-02-29", "2028-03-01"),
        ("2028-02-29T12:00:00", "2028-03-01", "2028-03-01"),
        ("2027-02-28T00:00:00", "2027-03-01", "2027-03-01"),
    ],
)
def test_periods_end_where_the_calendar_says(moment: str, day: str, month: str) -> None:
    """Also at the end of a year, and in a leap year."""
    assert Window.DAY.ends(at(moment)) == at(day)
    assert Window.MONTH.ends(at(moment)) == at(month)


def test_periods_are_utc_wherever_we_are() -> None:
    """A moment is the same moment in every zone."""
    moment = datetime(2026, 2, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))
    assert (Window.DAY.key(moment), Window.MONTH.key(moment)) == ("2026-01-31", "2026-01")


def test_an_amount_over_midnight_is_divided() -> None:
    """By time: a quarter of it on the first day."""
    spent = Spent()
    spent.add("team", 4.0, at("2026-01-31T23:00:00"), at("2026-02-01T03:00:00"))
    assert spent.of(Window.MONTH, at("2026-01-15")) == pytest.approx(1.0)
    assert spent.of(Window.DAY, at("2026-02-01"), "team") == pytest.approx(3.0)
    assert spent.of(Window.DAY, at("2026-02-01"), "other") == 0.0
    assert spent.of(Window.DAY, at("2026-03-01")) == 0.0


def test_an_amount_without_duration_belongs_to_its_moment() -> None:
    """And a correction never makes less than nothing of a sum."""
    spent = Spent()
    spent.add("", 1.0, at("2026-01-31"), at("2026-01-31"))
    spent.add("", -3.0, at("2026-01-31"), at("2026-01-31"))
    assert spent.of(Window.DAY, at("2026-01-31")) == 0.0


def test_a_clock_that_jumps_over_the_end_of_a_month_and_back_forgets_nothing() -> None:
    """The sum lies under the name of its month."""
    spent = Spent()
    spent.add("", 5.0, at("2026-01-31"), at("2026-01-31"))
    spent.add("", 1.0, at("2026-02-02"), at("2026-02-02"))
    spent.prune(at("2026-02-02"))
    assert spent.of(Window.MONTH, at("2026-01-31T01:00:00")) == 5.0


def test_periods_of_long_ago_are_forgotten() -> None:
    """Days after a week, months after three."""
    spent = Spent()
    spent.add("", 5.0, at("2026-01-01"), at("2026-01-01"))
    spent.prune(at("2026-02-01"))
    assert spent.of(Window.DAY, at("2026-01-01")) == 0.0
    assert spent.of(Window.MONTH, at("2026-01-01")) == 5.0
    spent.prune(at("2026-06-01"))
    assert spent.of(Window.MONTH, at("2026-01-01")) == 0.0


def test_what_was_saved_is_taken_up_where_it_is_more() -> None:
    """Only the present day and month are saved."""
    spent, later = Spent(), Spent()
    spent.add("team", 5.0, at("2026-01-30"), at("2026-01-30"))
    spent.add("team", 2.0, at("2026-01-31"), at("2026-01-31"))
    saved = spent.saved(at("2026-01-31"))
    assert saved == {
        "2026-01": {"": 7.0, "team": 7.0},
        "2026-01-31": {"": 2.0, "team": 2.0},
    }
    later.add("", 9.0, at("2026-01-31"), at("2026-01-31"))
    later.restore(saved)
    assert later.of(Window.MONTH, at("2026-01-31")) == 9.0
    assert later.of(Window.DAY, at("2026-01-31"), "team") == 2.0
    assert spent.saved(at("2026-05-01")) == {}
