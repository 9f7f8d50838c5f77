"""Every row of the table of failures: which signal is believed, and for what."""

from dataclasses import replace

import pytest

from tests.unit.bursting.views import NOW, ago
from vk_provider.bursting.limits import SignalLimits
from vk_provider.bursting.signals import (
    Census,
    Doubts,
    Kueue,
    PrometheusSignal,
    Trust,
    WatchSignal,
    judge,
)

LIMITS = SignalLimits()
WATCH = WatchSignal(home_nodes=10)
FRESH = PrometheusSignal(age=5, home_nodes=10, slots={1: 8})


def believed(
    watch: WatchSignal = WATCH,
    prometheus: PrometheusSignal | None = None,
    doubts: Doubts = Doubts(watch=Census(10), prometheus=Census(10)),  # noqa: B008  # frozen
) -> tuple[bool, bool, bool]:
    """What may be done: open for want of room, close, move."""
    trust, _ = judge(watch, prometheus, doubts, LIMITS, NOW)
    return trust.may_open, trust.may_close, trust.may_move


def test_fresh_signals_allow_everything() -> None:
    """With and without Prometheus."""
    assert believed() == (True, True, True)
    assert believed(prometheus=FRESH) == (True, True, True)


@pytest.mark.parametrize(
    "doubted",
    [
        PrometheusSignal(),
        replace(FRESH, age=120),
        replace(FRESH, is_empty=True),
        replace(FRESH, home_nodes=6),
    ],
    ids=["silent", "stale", "empty", "shrunken"],
)
def test_a_doubted_prometheus_moves_nobody_and_closes_nothing(doubted: PrometheusSignal) -> None:
    """Empty is unknown, not zero; the watch may still open."""
    assert believed(prometheus=doubted) == (True, False, False)


def test_after_five_minutes_only_a_waiting_pod_opens() -> None:
    """Home's room is not taken for granted any more."""
    doubts = Doubts(Census(10), Census(10), stale_since=ago(300))

    assert believed(prometheus=replace(FRESH, age=400), doubts=doubts) == (False, False, False)


def test_a_prometheus_that_is_back_is_believed_again() -> None:
    """The doubt is forgotten."""
    doubts = Doubts(Census(10), Census(10), stale_since=ago(300))
    trust, after = judge(WATCH, FRESH, doubts, LIMITS, NOW)

    assert (trust, after.stale_since) == (Trust(second=FRESH), None)


def test_a_third_fewer_home_nodes_in_one_step_is_doubted() -> None:
    """Exactly thirty per cent are not."""
    assert believed(replace(WATCH, home_nodes=6)) == (True, False, False)
    assert believed(replace(WATCH, home_nodes=7)) == (True, True, True)


def test_fewer_nodes_are_believed_once_they_have_stood_for_long() -> None:
    """A cluster may shrink; a mistake is over by then."""
    fewer = replace(WATCH, home_nodes=5)
    _, doubts = judge(fewer, None, Doubts(Census(10)), LIMITS, NOW)
    assert doubts.watch == Census(10, NOW)

    later = Doubts(Census(10, ago(300)))
    trust, doubts = judge(fewer, None, later, LIMITS, NOW)

    assert (trust.may_move, doubts.watch) == (True, Census(5))


def test_nodes_that_are_back_end_the_doubt() -> None:
    """At once."""
    _, doubts = judge(WATCH, None, Doubts(Census(10, ago(10))), LIMITS, NOW)

    assert doubts.watch == Census(10)


def test_a_missing_kueue_lets_open_and_close_and_moves_nobody() -> None:
    """How much training waits is unknown. A cluster without Kueue is another matter."""
    assert believed(replace(WATCH, kueue=Kueue.MISSING)) == (True, True, False)
    assert believed(replace(WATCH, kueue=Kueue.SERVED)) == (True, True, True)


def test_a_watch_that_has_stopped_moves_nobody() -> None:
    """What is known may be old."""
    assert believed(replace(WATCH, broken_for=119)) == (True, True, True)
    assert believed(replace(WATCH, broken_for=120)) == (True, False, False)


def test_before_the_first_list_nothing_is_known() -> None:
    """Not even that a pod waits."""
    trust, doubts = judge(WatchSignal(is_synced=False), FRESH, Doubts(), LIMITS, NOW)

    assert (trust.is_blind, trust.may_move, doubts) == (True, False, Doubts())


def test_the_first_doubt_is_the_one_that_is_told() -> None:
    """The API server's before Prometheus'."""
    both = judge(replace(WATCH, broken_for=199), PrometheusSignal(), Doubts(), LIMITS, NOW)[0]

    assert both.why == "the watches have not run for 199 s"
