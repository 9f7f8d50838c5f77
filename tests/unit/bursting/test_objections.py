"""Everything that keeps pods outside, and that a person is told what."""

from dataclasses import replace

import pytest

from tests.unit.bursting.gates import DOUBT, QUIET, RULES, at, look, moved
from tests.unit.bursting.views import NOW, ago
from vk_provider.bursting.gate import step
from vk_provider.bursting.gate_state import Gate
from vk_provider.bursting.limits import GateLimits
from vk_provider.bursting.objections import close_slots, has_held, objection, second_objection
from vk_provider.bursting.signals import PrometheusSignal, Trust
from vk_provider.bursting.situation import Situation
from vk_provider.bursting.spare import Supply


@pytest.mark.parametrize(
    ("situation", "why"),
    [
        (look(outside=0), "no pod is outside"),
        (look(trust=DOUBT), "stale"),
        (look(unavailable="outage"), "the node takes no pods (outage): none could go back"),
        (look(others_open="b"), "the gate of b is open"),
        (look(is_turn=False), "another node comes first"),
        (look(loss="it does not pay"), "it does not pay"),
        (look(quiet_for=3601), "home must be free for 3601 s"),
        (look(Supply((8, 8), training_waiting=1)), "training waits for 1 GPUs"),
        (look(Supply((1,))), "1 spare slots at home are too few"),
        (
            look(trust=Trust(second=PrometheusSignal(1, False, 2, {1: 1}))),
            "Prometheus sees 1 free slots of 1 GPUs",
        ),
        (
            look(trust=Trust(second=PrometheusSignal(1, False, 2, {1: 9}, 8))),
            "Prometheus sees training wait for 8 GPUs",
        ),
    ],
    ids=lambda value: value.replace(" ", "-")[:30] if isinstance(value, str) else "",
)
def test_anything_at_all_keeps_them_outside(situation: Situation, why: str) -> None:
    """And a person is told what."""
    state = at(Gate.HOLD, **QUIET)
    after = step(state, situation, RULES, NOW)

    assert after.value is Gate.HOLD
    assert objection(after, situation, RULES.gate, NOW) == why


def test_a_failed_homecoming_and_a_young_gate_keep_them_outside() -> None:
    """Half an hour, two minutes."""
    failed = at(Gate.HOLD, failed=(ago(60),), **QUIET)
    young = replace(at(Gate.HOLD, **QUIET), since=ago(60))

    assert objection(failed, look(), RULES.gate, NOW) == (
        "a homecoming failed: not before 12:29:00"
    )
    assert objection(young, look(), RULES.gate, NOW) == "the gate has moved within 120 s"
    assert moved(failed, look()) is None
    assert moved(young, look()) is None
    assert objection(at(Gate.HOLD, **QUIET), look(), RULES.gate, NOW) is None


def test_room_enough_is_a_part_of_those_outside() -> None:
    """At least two slots."""
    assert [close_slots(look(all_outside=n), GateLimits()) for n in (0, 20, 21)] == [2, 2, 3]


def test_prometheus_may_agree() -> None:
    """Or not be asked at all."""
    agrees = Trust(second=PrometheusSignal(1, False, 2, {1: 9, 2: 4}))

    assert second_objection(look(trust=agrees), 4) is None
    assert second_objection(look(), 4) is None


def test_a_condition_holds_from_its_beginning() -> None:
    """To the second."""
    assert has_held(ago(10), 10, NOW)
    assert not has_held(ago(9), 10, NOW)
    assert not has_held(None, 0, NOW)
