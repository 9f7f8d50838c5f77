"""The gate's rules, one by one: fast towards serving, slow towards home."""

from dataclasses import replace

import pytest

from tests.unit.bursting.gates import DOUBT, FULL, QUIET, RULES, at, look, moved
from tests.unit.bursting.views import NOW, ago
from vk_provider.bursting.gate import dead_man, step
from vk_provider.bursting.gate_state import Gate, GateReason
from vk_provider.bursting.homecoming import Homecoming
from vk_provider.bursting.limits import GateLimits, HomecomingLimits
from vk_provider.bursting.signals import PrometheusSignal, Trust
from vk_provider.bursting.situation import Rules, Situation
from vk_provider.bursting.spare import Supply


def test_a_waiting_pod_opens_within_seconds() -> None:
    """From hold and from return, in no time at all after a move, whatever Prometheus says."""
    waits = look(FULL, waiting=(ago(5),), trust=replace(DOUBT, may_open=False))
    young = replace(at(Gate.HOLD), since=ago(1))

    assert moved(young, waits) == ("open", "PodsWaiting")
    assert moved(at(Gate.RETURN), waits) == ("open", "PodsWaiting")
    assert moved(at(Gate.HOLD), replace(waits, waiting=(ago(4),))) is None


def test_a_pod_that_an_open_gate_did_not_help_does_not_open_it_again() -> None:
    """It lacks something else."""
    futile = at(Gate.HOLD, opened_until=ago(60))

    assert moved(futile, look(waiting=(ago(90),))) is None
    assert moved(futile, look(waiting=(ago(89),))) == ("open", "PodsWaiting")


def test_a_person_s_word_stands_above_every_rule() -> None:
    """Whatever was counted, and whoever waits."""
    busy = at(Gate.OPEN, transitions=(ago(60),) * 9)
    waits = look(FULL, waiting=(ago(90),))

    assert moved(busy, replace(waits, override=Gate.HOLD)) == ("hold", "Overridden")
    assert moved(at(Gate.HOLD), replace(waits, override=Gate.HOLD)) is None
    assert moved(at(Gate.RETURN), look(override=Gate.OPEN)) == ("open", "Overridden")
    assert moved(at(Gate.HOLD, **QUIET), look(override=Gate.HOLD)) is None


def test_only_a_gate_that_could_help_makes_a_pod_futile() -> None:
    """Not one through which nobody could have gone."""
    rules = Rules(gate=GateLimits(provider_after=0))
    away = at(Gate.OPEN, provider_since=ago(60))
    closed = step(away, look(FULL, unavailable="outage", waiting=(ago(90),)), rules, NOW)

    assert (closed.value, closed.opened_until) == (Gate.HOLD, None)
    assert moved(closed, look(FULL, waiting=(ago(90),))) == ("open", "PodsWaiting")
    roomy = step(at(Gate.OPEN, roomy_since=ago(180)), look(), RULES, NOW)
    assert roomy.opened_until == NOW


def test_a_full_home_opens_ahead_of_time() -> None:
    """After a while, and not right after a move."""
    scarce = at(Gate.HOLD, scarce_since=ago(30))

    assert moved(scarce, look(FULL)) == ("open", "HomeIsFull")
    assert moved(replace(scarce, scarce_since=ago(29)), look(FULL)) is None
    assert moved(replace(scarce, since=ago(100)), look(FULL)) is None
    assert moved(scarce, look(FULL, trust=Trust(may_open=False))) is None


def test_room_at_home_closes_after_a_while() -> None:
    """Three minutes, and not right after a move."""
    roomy = at(Gate.OPEN, roomy_since=ago(180))

    assert moved(roomy, look()) == ("hold", "SpareAtHome")
    assert moved(replace(roomy, roomy_since=ago(179)), look()) is None
    assert moved(replace(roomy, since=ago(100)), look()) is None


def test_room_for_a_tenth_of_those_outside_is_needed() -> None:
    """At least two slots."""
    roomy = at(Gate.OPEN, roomy_since=ago(180))

    assert moved(roomy, look(Supply(free=(1,)))) is None
    assert moved(roomy, look(Supply(free=(2,)))) == ("hold", "SpareAtHome")
    assert moved(roomy, look(Supply(free=(2,)), all_outside=21)) is None


def test_quiet_begins_when_training_no_longer_waits() -> None:
    """There may be room for more than it waits for; nobody comes home in that hope."""
    waits = step(at(Gate.HOLD, **QUIET), look(Supply((8, 8), training_waiting=1)), RULES, NOW)
    assert waits.quiet_since is None
    assert step(waits, look(), RULES, NOW).quiet_since == NOW


def test_a_doubted_signal_closes_nothing() -> None:
    """And the clock of the room begins anew."""
    after = step(at(Gate.OPEN, **QUIET), look(trust=DOUBT), RULES, NOW)

    assert (after.value, after.roomy_since, after.quiet_since) == (Gate.OPEN, None, None)


def test_a_gate_stays_open_for_who_may_still_go_through() -> None:
    """Unless it has waited in vain."""
    roomy = at(Gate.OPEN, roomy_since=ago(180))

    assert moved(roomy, look(waiting=(ago(10),))) is None
    assert moved(roomy, look(waiting=(ago(40),))) == ("hold", "SpareAtHome")


@pytest.mark.parametrize(
    ("value", "reason"),
    [("capacity", "ProviderUnavailable"), ("budget", "BudgetExhausted")],
)
def test_an_unavailable_provider_closes_the_gate(value: str, reason: str) -> None:
    """After a minute; a waiting pod can't open it meanwhile."""
    away = at(Gate.OPEN, provider_since=ago(60))
    closed = look(FULL, unavailable=value, waiting=(ago(60),))

    assert moved(away, closed) == ("hold", reason)
    assert moved(replace(away, provider_since=ago(59)), closed) is None
    assert moved(at(Gate.HOLD), closed) is None
    assert moved(at(Gate.RETURN), look(unavailable=value)) == ("hold", reason)


def test_home_that_is_free_for_long_calls_them_back() -> None:
    """The slow direction. Prometheus may agree."""
    agrees = Trust(second=PrometheusSignal(1, False, 2, {1: 9, 2: 4}))

    assert moved(at(Gate.HOLD, **QUIET), look()) == ("return", "HomeIsFree")
    assert moved(at(Gate.HOLD, **QUIET), look(trust=agrees)) == ("return", "HomeIsFree")


@pytest.mark.parametrize(
    ("situation", "reason"),
    [
        (look(trust=DOUBT), "SignalsInDoubt"),
        (look(trust=Trust(is_blind=True, may_move=False)), "SignalsInDoubt"),
        (look(homecoming=Homecoming(outside=("a/b",))), "LandedOutside"),
        (look(homecoming=Homecoming(late=("a/b",))), "HomecomingLate"),
        (look(Supply((8, 8), training_waiting=1)), "TrainingWaiting"),
        (
            look(trust=Trust(second=PrometheusSignal(1, False, 2, {1: 0}, 8))),
            "TrainingWaiting",
        ),
        (look(others_open="b"), "OtherGateOpen"),
        (look(FULL), "NoRoom"),
        (look(outside=0), "AllHome"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_sign_that_it_goes_wrong_ends_a_return(situation: Situation, reason: str) -> None:
    """At once: no dwell protects it."""
    young = replace(at(Gate.RETURN), since=ago(1))

    assert moved(young, situation) == ("hold", reason)


def test_a_return_goes_on_while_all_is_well() -> None:
    """Also while the last ones are still on their way."""
    assert moved(at(Gate.RETURN), look()) is None
    assert moved(at(Gate.RETURN), look(outside=0, homecoming=Homecoming(in_flight=1))) is None


def test_who_sees_nothing_does_nothing() -> None:
    """Open stays open, hold stays hold."""
    blind = look(FULL, trust=Trust(False, False, False, is_blind=True), waiting=(ago(99),))

    assert step(at(Gate.OPEN), blind, RULES, NOW) == at(Gate.OPEN)
    assert step(at(Gate.HOLD), blind, RULES, NOW) == at(Gate.HOLD)


def test_a_return_pauses_while_one_more_cycle_would_be_too_many() -> None:
    """Two at once, two a cycle: the next two wait for these."""

    def paused(limits: HomecomingLimits, in_flight: int, of_one: int = 1) -> bool:
        seen = look(homecoming=Homecoming(in_flight, of_one))
        return step(at(Gate.RETURN), seen, Rules(homecoming=limits), NOW).is_paused

    usual = HomecomingLimits()
    assert [paused(usual, count) for count in range(3)] == [False, True, True]
    assert [paused(replace(usual, max_in_flight=4), count) for count in (2, 3)] == [False, True]
    assert paused(replace(usual, max_in_flight=9), 2, of_one=2)


def test_a_failure_is_remembered_until_one_went_well() -> None:
    """All of them in a row count."""
    late = look(homecoming=Homecoming(late=("a/b",)))
    failed = step(at(Gate.RETURN, failed=(ago(9999),)), late, RULES, NOW)

    assert failed.failed == (ago(9999), NOW)
    for _ in range(10):
        failed = step(replace(failed, value=Gate.RETURN, transitions=()), late, RULES, NOW)
    assert len(failed.failed) == 4  # as many as count
    well = step(replace(failed, value=Gate.RETURN), look(outside=0), RULES, NOW)
    assert (well.reason, well.failed) == (GateReason.ALL_HOME, ())


def test_a_gate_that_moved_too_often_is_frozen_towards_home() -> None:
    """It may always open; what has left the window counts no longer."""
    busy = at(Gate.HOLD, transitions=(ago(3000),) * 4, **QUIET)
    frozen = step(busy, look(), RULES, NOW)

    assert (frozen.value, frozen.is_frozen) == (Gate.HOLD, True)
    assert moved(busy, look(FULL, waiting=(ago(9),))) == ("open", "PodsWaiting")
    assert moved(replace(busy, transitions=(ago(3600),) * 4), look()) == ("return", "HomeIsFree")
    open_ = at(Gate.OPEN, transitions=(ago(3000),) * 5, **QUIET)
    assert step(open_, look(), RULES, NOW).is_frozen
    thawed = step(replace(frozen, transitions=()), look(outside=0), RULES, NOW)
    assert not thawed.is_frozen


def test_a_lowered_cap_does_not_keep_anybody_on_the_way() -> None:
    """Opening and stopping are never refused."""
    rules = Rules(gate=GateLimits(max_transitions=3))
    busy = at(Gate.RETURN, transitions=(ago(60),) * 9)

    assert moved(busy, look(trust=DOUBT), rules) == ("hold", "SignalsInDoubt")
    assert moved(busy, look(waiting=(ago(9),)), rules) == ("open", "PodsWaiting")


def test_a_silent_controller_is_held_by_the_node() -> None:
    """Whatever it had written."""
    written = at(Gate.RETURN, is_paused=True, transitions=(ago(60),))

    held = dead_man(written, NOW)
    assert (held.value, held.reason, held.since) == (Gate.HOLD, GateReason.CONTROLLER_SILENT, NOW)
    assert (held.transitions, held.is_paused) == ((ago(60), NOW), False)
    assert dead_man(None, NOW).value is Gate.HOLD
