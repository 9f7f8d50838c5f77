"""The pure part of the watch: how long to wait."""

from __future__ import annotations

import pytest

from vk_provider.kube.watch import WatchTimings, delay_seconds

TIMINGS = WatchTimings()


@pytest.mark.parametrize(
    ("failures", "jitter", "expected"),
    [(0, 0.9, 0.0), (1, 0.0, 0.4), (1, 1.0, 0.8), (2, 1.0, 1.6), (6, 1.0, 25.6), (99, 1.0, 30.0)],
)
def test_delay_doubles_up_to_its_cap(failures: int, jitter: float, expected: float) -> None:
    """0.8 s to 30 s, with up to half of it taken off."""
    assert delay_seconds(failures, TIMINGS, jitter) == pytest.approx(expected)


def test_two_minutes_of_refusal_cost_at_most_fifteen_calls() -> None:
    """Even if the jitter always falls short."""
    elapsed, calls = 0.0, 0
    while elapsed < 120.0:
        calls += 1
        elapsed += delay_seconds(calls, TIMINGS, 0.0)

    assert calls <= 15
