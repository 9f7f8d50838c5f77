"""A simulator's time."""

from __future__ import annotations

import pytest

from vk_provider.testing.simulator.clock import Clock, http_date, parse_rfc3339, rfc3339


def test_a_clock_that_stands_still_moves_when_it_is_told() -> None:
    """And never back; it may start in the past."""
    clock, late = Clock(speed=0), Clock(speed=0, behind=100)
    before = clock.now()

    assert clock.advance(5) == before + 5
    assert clock.now() == before + 5
    assert late.now() < before
    with pytest.raises(ValueError, match="0 or more"):
        clock.advance(-1)


def test_times_are_written_as_apis_write_them() -> None:
    """And read back; a time without a zone is none."""
    assert rfc3339(1_800_000_000) == "2027-01-15T08:00:00Z"
    assert parse_rfc3339(rfc3339(1_800_000_000.5)) == 1_800_000_000.5
    assert http_date(1_800_000_000) == "Fri, 15 Jan 2027 08:00:00 GMT"
    with pytest.raises(ValueError, match="time zone"):
        parse_rfc3339("2027-01-15T08:00:00")
