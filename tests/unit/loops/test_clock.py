"""The system's calendar as loops see it: it may jump ahead, and never back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from vk_provider.loops.clock import SystemClock

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def seconds_after(*moments: tuple[float, float]) -> list[float]:
    """What the clock says, in seconds after noon, when the system says the one and the other."""
    told = iter((moments[0], *moments))
    clock = SystemClock(lambda: (NOON + timedelta(seconds=(each := next(told))[0]), each[1]))
    return [(clock.now() - NOON).total_seconds() for _ in moments]


def test_the_calendar_is_the_systems() -> None:
    """Also where that was put ahead."""
    assert seconds_after((0, 7), (1, 8), (3601, 9)) == [0, 1, 3601]


def test_a_system_whose_time_was_put_back_is_caught_up_with_slowly() -> None:
    """What is known of a pod has its time: news must not look older than it for an hour."""
    assert seconds_after((0, 7), (-100, 8), (0, 108), (101, 209), (111, 219)) == [
        0,
        0.5,
        50.5,
        101,
        111,
    ]
