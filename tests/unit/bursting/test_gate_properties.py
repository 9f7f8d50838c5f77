"""What no sequence of signals, however hostile, makes the gate do."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bursting.views import NOW
from vk_provider.bursting.gate import step
from vk_provider.bursting.gate_state import Gate, GateState, initial, read, render
from vk_provider.bursting.homecoming import Homecoming
from vk_provider.bursting.limits import GateLimits
from vk_provider.bursting.signals import PrometheusSignal, Trust
from vk_provider.bursting.situation import Rules, Situation
from vk_provider.bursting.spare import Supply


@dataclass(frozen=True)
class Moment:
    """What is seen after so many seconds."""

    after: float
    situation: Situation
    waited: float | None


_seconds = st.sampled_from([0.2, 1.0, 5.0, 29.0, 31.0, 61.0, 121.0, 181.0, 601.0, 1801.0])
_names = st.sampled_from([(), ("a/b",)])
_trust = st.one_of(
    st.just(Trust()),
    st.builds(
        Trust,
        may_open=st.booleans(),
        may_close=st.booleans(),
        may_move=st.booleans(),
        is_blind=st.sampled_from([False, False, False, True]),
        second=st.none() | st.just(PrometheusSignal(1.0, False, 2, {1: 0.0})),
    ),
)
_situation = st.builds(
    Situation,
    supply=st.builds(
        Supply, free=st.sampled_from([(0,), (1,), (8, 8)]), training_waiting=st.sampled_from([0, 8])
    ),
    trust=_trust,
    outside=st.sampled_from([0, 4]),
    all_outside=st.just(4),
    unavailable=st.sampled_from([None, None, "capacity", "budget"]),
    homecoming=st.builds(Homecoming, in_flight=st.integers(0, 3), late=_names, outside=_names),
    quiet_for=st.sampled_from([0.0, 600.0]),
    is_turn=st.booleans(),
    others_open=st.sampled_from([None, None, "other"]),
)
_moments = st.lists(
    st.builds(Moment, _seconds, _situation, st.none() | st.sampled_from([1.0, 6.0, 40.0])),
    min_size=1,
    max_size=60,
)
_limits = st.builds(
    GateLimits,
    dwell=st.sampled_from([0.0, 120.0]),
    close_after=st.sampled_from([0.0, 180.0]),
    scarce_for=st.sampled_from([0.0, 30.0]),
    failed_quiet=st.sampled_from([0.0, 1800.0]),
    max_transitions=st.integers(3, 8),
    transitions_window=st.sampled_from([60.0, 3600.0]),
)


def lived(
    moments: Sequence[Moment], rules: Rules
) -> list[tuple[datetime, GateState, Situation, GateState]]:
    """Each step: when, the state before, what was seen, the state after."""
    now, state, steps = NOW, initial(NOW), []
    for moment in moments:
        now += timedelta(seconds=moment.after)
        waiting = () if moment.waited is None else (now - timedelta(seconds=moment.waited),)
        seen = Situation(
            **{name: getattr(moment.situation, name) for name in Situation.__slots__}
            | {"waiting": waiting}
        )
        after = step(state, seen, rules, now)
        steps.append((now, state, seen, after))
        state = after
    return steps


@given(_moments, _limits)
def test_the_gate_never_moves_more_often_than_the_cap(
    moments: list[Moment], limits: GateLimits
) -> None:
    """In any window, on any signals."""
    moves = [
        now
        for now, before, _, after in lived(moments, Rules(gate=limits))
        if before.value is not after.value
    ]
    window = timedelta(seconds=limits.transitions_window)

    for index, first in enumerate(moves):
        assert sum(at - first < window for at in moves[index:]) <= limits.max_transitions


@given(_moments, _limits)
def test_a_pod_that_waits_always_finds_the_gate_open(
    moments: list[Moment], limits: GateLimits
) -> None:
    """However often the gate has moved, unless nobody would take the pod."""
    for now, before, seen, after in lived(moments, Rules(gate=limits)):
        if seen.trust.is_blind or seen.unavailable or not seen.waiting:
            continue
        waited = (now - seen.waiting[0]).total_seconds()
        is_futile = before.opened_until is not None and waited >= limits.futile_after
        if before.value is not Gate.OPEN and waited >= limits.open_after and not is_futile:
            assert after.value is Gate.OPEN


@given(_moments, _limits)
def test_nobody_is_moved_on_a_doubted_signal(moments: list[Moment], limits: GateLimits) -> None:
    """Nor while training waits, home is full, or somebody on the way went astray."""
    for _, before, seen, after in lived(moments, Rules(gate=limits)):
        if after.value is Gate.RETURN:
            assert seen.trust.may_move
            assert seen.supply.training_waiting == 0
            assert seen.unavailable is None
            assert seen.supply.least_spare >= 1 or seen.outside == 0
        if before.value is Gate.RETURN and after.taint == Gate.RETURN:
            assert seen.homecoming.in_flight == 0


@given(_moments, _limits)
def test_a_new_leader_decides_as_the_old_one_would(
    moments: list[Moment], limits: GateLimits
) -> None:
    """After every step of any life, out of the annotation alone."""
    rules = Rules(gate=limits)

    for now, before, seen, after in lived(moments, rules):
        written = read(render(before))
        assert written is not None
        assert written == before
        assert step(written, seen, rules, now) == after
