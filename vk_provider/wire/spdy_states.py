"""PURE. What may happen to a SPDY stream, as one table; everything about a stream's state is here.

We are the server, so each stream is opened by the peer (odd ids, rising), answered by us with
SYN_REPLY or RST_STREAM, and ended in each direction on its own by FLAG_FIN (SPDY/3 draft, 2.3).
A pair that is absent from the table is an error: the peer's is answered as :func:`violation`
says, our own raises. Fed by :mod:`.spdy_receive` and :mod:`.spdy`; decides for both.
"""

from __future__ import annotations

from enum import Enum

from vk_provider.faults import WireError
from vk_provider.wire.spdy_frames import ResetStatus


class StreamState(Enum):
    """Where a stream is in its life."""

    IDLE = "idle"
    """Not opened yet, or never: any id above the highest one seen, and even ids."""
    OPENED = "opened"
    """SYN_STREAM arrived; we have not answered. The peer may send already."""
    OPENED_ENDED = "opened, peer ended"
    OPEN = "open"
    PEER_ENDED = "peer ended"
    """Half-closed by the peer: it reads on."""
    WE_ENDED = "we ended"
    """Half-closed by us: we read on."""
    CLOSED = "closed"
    """Ended by both, or reset by one. Frames that were on their way are dropped in silence."""


class StreamInput(Enum):
    """What moves a stream: frames of the peer, and our own acts."""

    PEER_OPENS = "SYN_STREAM"
    PEER_SENDS = "DATA or HEADERS"
    PEER_ENDS = "DATA or HEADERS with FLAG_FIN"
    PEER_RESETS = "RST_STREAM"
    PEER_REPLIES = "SYN_REPLY"
    PEER_WIDENS = "WINDOW_UPDATE"
    WE_ACCEPT = "send SYN_REPLY"
    WE_SEND = "send DATA"
    WE_END = "send DATA with FLAG_FIN"
    WE_RESET = "send RST_STREAM"


_S, _I = StreamState, StreamInput

TRANSITIONS: dict[StreamState, dict[StreamInput, StreamState]] = {
    _S.IDLE: {
        _I.PEER_OPENS: _S.OPENED,
        _I.PEER_RESETS: _S.IDLE,
        _I.PEER_WIDENS: _S.IDLE,
    },
    _S.OPENED: {
        _I.PEER_SENDS: _S.OPENED,
        _I.PEER_ENDS: _S.OPENED_ENDED,
        _I.PEER_RESETS: _S.CLOSED,
        _I.PEER_WIDENS: _S.OPENED,
        _I.WE_ACCEPT: _S.OPEN,
        _I.WE_RESET: _S.CLOSED,
    },
    _S.OPENED_ENDED: {
        _I.PEER_RESETS: _S.CLOSED,
        _I.PEER_WIDENS: _S.OPENED_ENDED,
        _I.WE_ACCEPT: _S.PEER_ENDED,
        _I.WE_RESET: _S.CLOSED,
    },
    _S.OPEN: {
        _I.PEER_SENDS: _S.OPEN,
        _I.PEER_ENDS: _S.PEER_ENDED,
        _I.PEER_RESETS: _S.CLOSED,
        _I.PEER_WIDENS: _S.OPEN,
        _I.WE_SEND: _S.OPEN,
        _I.WE_END: _S.WE_ENDED,
        _I.WE_RESET: _S.CLOSED,
    },
    _S.PEER_ENDED: {
        _I.PEER_RESETS: _S.CLOSED,
        _I.PEER_WIDENS: _S.PEER_ENDED,
        _I.WE_SEND: _S.PEER_ENDED,
        _I.WE_END: _S.CLOSED,
        _I.WE_RESET: _S.CLOSED,
    },
    _S.WE_ENDED: {
        _I.PEER_SENDS: _S.WE_ENDED,
        _I.PEER_ENDS: _S.CLOSED,
        _I.PEER_RESETS: _S.CLOSED,
        _I.PEER_WIDENS: _S.WE_ENDED,
        _I.WE_RESET: _S.CLOSED,
    },
    _S.CLOSED: {
        _I.PEER_SENDS: _S.CLOSED,
        _I.PEER_ENDS: _S.CLOSED,
        _I.PEER_RESETS: _S.CLOSED,
        _I.PEER_WIDENS: _S.CLOSED,
    },
}


def peer_moves(state: StreamState, peer_input: StreamInput) -> StreamState | None:
    """The next state, or None where the peer broke the protocol: see :func:`violation`."""
    return TRANSITIONS[state].get(peer_input)


def we_move(state: StreamState, our_input: StreamInput) -> StreamState:
    """The next state.

    Raises:
        WireError: our own code does what the stream does not allow.
    """
    after = TRANSITIONS[state].get(our_input)
    if after is None:
        raise WireError(f"can't {our_input.value} on a stream that is {state.value}")
    return after


def violation(state: StreamState, peer_input: StreamInput) -> ResetStatus | None:
    """The RST_STREAM that answers a pair which is not in the table; None ends the connection.

    A SYN_REPLY answers nothing, since a server of Kubernetes streams opens none: that peer is
    beyond repair. A repeated or falling id gets PROTOCOL_ERROR, as moby/spdystream answers it.
    """
    if peer_input is StreamInput.PEER_REPLIES:
        return None
    if peer_input is StreamInput.PEER_OPENS:
        return ResetStatus.PROTOCOL_ERROR
    if state is StreamState.IDLE:
        return ResetStatus.INVALID_STREAM
    return ResetStatus.STREAM_ALREADY_CLOSED
