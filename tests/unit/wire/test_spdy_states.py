"""The table of a stream's states: complete, closed, and the same as what frames do."""

import itertools

import pytest

from vk_provider.faults import WireError
from vk_provider.wire.spdy_frames import ResetStatus
from vk_provider.wire.spdy_states import (
    TRANSITIONS,
    StreamInput,
    StreamState,
    peer_moves,
    violation,
    we_move,
)

PEER = [one for one in StreamInput if one.name.startswith("PEER_")]
OURS = [one for one in StreamInput if one.name.startswith("WE_")]


@pytest.mark.parametrize(("state", "peer_input"), [*itertools.product(StreamState, PEER)])
def test_every_frame_in_every_state_has_an_answer(
    state: StreamState, peer_input: StreamInput
) -> None:
    """A next state, a RST_STREAM, or (SYN_REPLY alone) the end of the connection."""
    after = peer_moves(state, peer_input)

    if after is None:
        ends = violation(state, peer_input) is None
        assert ends == (peer_input is StreamInput.PEER_REPLIES)
    else:
        assert after in StreamState


@pytest.mark.parametrize(("state", "our_input"), [*itertools.product(StreamState, OURS)])
def test_every_act_in_every_state_is_legal_or_raises(
    state: StreamState, our_input: StreamInput
) -> None:
    """Our own faults are never sent."""
    if our_input in TRANSITIONS[state]:
        assert we_move(state, our_input) is TRANSITIONS[state][our_input]
    else:
        with pytest.raises(WireError, match=f"can't {our_input.value} on a stream that is"):
            we_move(state, our_input)


def test_closed_is_final() -> None:
    """No frame brings a stream back."""
    assert set(TRANSITIONS[StreamState.CLOSED].values()) == {StreamState.CLOSED}


def test_every_state_can_be_left_for_closed() -> None:
    """No stream has to live for ever."""
    for state in set(StreamState) - {StreamState.IDLE, StreamState.CLOSED}:
        assert peer_moves(state, StreamInput.PEER_RESETS) is StreamState.CLOSED
        assert we_move(state, StreamInput.WE_RESET) is StreamState.CLOSED


def test_a_violation_is_named_as_the_draft_does() -> None:
    """INVALID_STREAM before a stream, STREAM_ALREADY_CLOSED after its end."""
    sends, opens = StreamInput.PEER_SENDS, StreamInput.PEER_OPENS

    assert violation(StreamState.IDLE, sends) is ResetStatus.INVALID_STREAM
    assert violation(StreamState.PEER_ENDED, sends) is ResetStatus.STREAM_ALREADY_CLOSED
    assert violation(StreamState.OPEN, opens) is ResetStatus.PROTOCOL_ERROR
