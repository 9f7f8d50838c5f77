"""The thresholds of the gate: defaults, bounds, and what must fit together."""

import pytest

from vk_provider.bursting.limits import BreakEven, HomecomingLimits, SignalLimits
from vk_provider.fields import Fields
from vk_provider.settings_bursting_gate import GateSettings, parse_gate, parse_homecoming


def test_empty_blocks_are_the_defaults() -> None:
    """The parser and the dataclasses agree on every default."""
    assert parse_gate(Fields({}, "gate", [])) == GateSettings()
    assert parse_homecoming(Fields({}, "homecoming", [])) == HomecomingLimits()


def test_a_full_block_is_read() -> None:
    """Every part of it."""
    fields = Fields(
        {
            "closeSlots": 5,
            "maxTransitions": 8,
            "signals": {"staleAfterSeconds": 5, "longStaleAfterSeconds": 9},
            "breakEven": {"disruptionUsd": 1},
            "heartbeatSeconds": 1,
            "podDeletionCost": {"cost": -7},
        },
        "gate",
        [],
    )

    found = parse_gate(fields)

    assert fields.problems == []
    assert (found.limits.close_slots, found.limits.max_transitions) == (5, 8)
    assert found.signals == SignalLimits(stale_after=5, long_stale_after=9)
    assert found.break_even == BreakEven(disruption_usd=1)
    assert (found.heartbeat_every, found.deletion_cost) == (1, -7)


def test_the_deletion_cost_may_be_left_to_others() -> None:
    """An HPA's owner may write it."""
    fields = Fields({"podDeletionCost": {"enabled": False}}, "gate", [])

    assert parse_gate(fields).deletion_cost is None


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (
            {"openSlots": 3, "closeSlots": 3},
            "closeSlots: found 3, allowed: more than openSlots (3)",
        ),
        ({"maxTransitions": 4}, "maxTransitions: found 4, allowed: a whole number of at least 5"),
        (
            {"signals": {"staleAfterSeconds": 9, "longStaleAfterSeconds": 5}},
            "signals.longStaleAfterSeconds: found 5, allowed: at least staleAfterSeconds (9)",
        ),
    ],
)
def test_what_does_not_fit_together_is_one_problem(block: object, problem: str) -> None:
    """With both numbers."""
    fields = Fields(block, "", [])
    parse_gate(fields)

    assert [str(one) for one in fields.problems] == [problem]


def test_one_cycle_may_not_pass_the_limit() -> None:
    """The taint can only be taken back between two cycles."""
    fields = Fields({"maxInFlight": 1}, "", [])
    parse_homecoming(fields)

    assert [str(one) for one in fields.problems] == [
        "evictionsPerCycle: found 2, allowed: at most maxInFlight (1), or one cycle passes it"
    ]
