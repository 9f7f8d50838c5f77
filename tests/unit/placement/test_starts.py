"""The start-up times that were seen."""

from __future__ import annotations

import math

import pytest

from vk_provider.placement import starts
from vk_provider.placement.starts import StartTimes


def test_quantiles_are_durations_that_happened() -> None:
    """The nearest rank, by backend and GPU type."""
    seen = StartTimes()
    for seconds in range(1, 21):
        seen.add("b", "L40S", float(seconds))
    assert seen.quantile("b", "L40S", 0.5) == 10
    assert seen.quantile("b", "L40S", 0.95) == 19
    assert seen.quantile("b", "A100", 0.95) is None


def test_a_type_that_never_started_is_reckoned_at_its_backends_median() -> None:
    """Of a backend that never started anything nothing is known."""
    seen = StartTimes()
    seen.add("b", "L40S", 10.0)
    seen.add("b", None, 30.0)
    assert seen.median("b", "L40S") == 10
    assert seen.median("b", "A100") == 10
    assert seen.median("other", "A100") is None
    assert seen.keys() == (("b", "L40S"), ("b", None))


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf, 2 * starts.LONGEST])
def test_what_is_no_duration_is_no_start(seconds: float) -> None:
    """A clock that stepped must not teach anything."""
    seen = StartTimes()
    seen.add("b", None, seconds)
    assert seen.keys() == ()


def test_the_memory_is_bounded_both_ways() -> None:
    """Old starts go, and of the keys the one that was not heard of for longest."""
    seen = StartTimes()
    seen.add("b", "first", 1000.0)
    for number in range(starts.KEPT):
        seen.add("b", "L40S", float(number))
    seen.add("b", "L40S", 5000.0)
    assert seen.quantile("b", "L40S", 0.0) == 1.0
    for number in range(starts.MOST_KEYS):
        seen.add("b", f"type-{number}", 1.0)
    assert seen.quantile("b", "first", 0.5) is None
    assert len(seen.keys()) == starts.MOST_KEYS
