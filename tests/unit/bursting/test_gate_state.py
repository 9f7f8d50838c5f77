"""What a gate remembers, on its Node and back."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bursting.views import NOW
from vk_provider.bursting.gate_state import (
    Gate,
    GateReason,
    GateState,
    initial,
    read,
    render,
)

_moments = st.integers(0, 10**12).map(lambda us: NOW + timedelta(microseconds=us))
_lists = st.lists(_moments, max_size=8).map(tuple)
STATES = st.builds(
    GateState,
    value=st.sampled_from(Gate),
    since=_moments,
    reason=st.sampled_from(GateReason),
    message=st.text(max_size=40),
    transitions=_lists,
    scarce_since=st.none() | _moments,
    roomy_since=st.none() | _moments,
    quiet_since=st.none() | _moments,
    provider_since=st.none() | _moments,
    opened_until=st.none() | _moments,
    failed=_lists,
    is_paused=st.booleans(),
    is_frozen=st.booleans(),
)


@given(STATES)
def test_a_state_survives_its_annotation(state: GateState) -> None:
    """To the microsecond: a new leader goes on where the old one stood."""
    assert read(render(state)) == state


def test_the_annotation_is_short_and_readable() -> None:
    """What is empty is left out."""
    assert render(initial(NOW)) == (
        '{"state":"hold","since":"2026-01-01T12:00:00Z","reason":"Started",'
        '"message":"the gate is managed from now on"}'
    )


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "hold",
        "[]",
        "{}",
        '{"state":"ajar","since":"2026-01-01T12:00:00Z"}',
        '{"state":"hold","since":7}',
        '{"state":"hold"}',
        '{"state":"hold","since":"9999-12-31T23:00:00-14:00"}',
        "[" * 100_000,
        '{"state":"hold","since":"2026-01-01T12:00:00Z","transitions":3}',
    ],
)
def test_nonsense_is_no_state(text: str | None) -> None:
    """Somebody's hand: the gate begins anew."""
    assert read(text) is None


def test_a_time_without_a_zone_is_utc() -> None:
    """However it came there."""
    found = read('{"state":"open","since":"2026-01-01T12:00:00"}')

    assert found is not None
    assert found.since == NOW


@pytest.mark.parametrize(
    ("gate", "is_paused", "taint"),
    [
        (Gate.OPEN, False, None),
        (Gate.HOLD, False, "hold"),
        (Gate.RETURN, False, "return"),
        (Gate.RETURN, True, "hold"),
    ],
)
def test_the_taint_says_what_others_should_do(
    gate: Gate, is_paused: bool, taint: str | None
) -> None:
    """A paused return lets nobody follow."""
    assert GateState(gate, NOW, is_paused=is_paused).taint == taint
