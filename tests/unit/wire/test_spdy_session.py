"""What a connection remembers: live streams only, faults by count, and its end once."""

from typing import Any

import pytest

from tests.unit.wire.peer import sent
from vk_provider.faults import WireError
from vk_provider.wire.spdy_flow import CONNECTION, Unread, UnreadLimits
from vk_provider.wire.spdy_frames import ResetStatus
from vk_provider.wire.spdy_headers import HeaderReader
from vk_provider.wire.spdy_session import ConnectionFailed, Session, SpdyLimits, StreamReset
from vk_provider.wire.spdy_states import StreamInput, StreamState


@pytest.fixture
def session() -> Session:
    """A connection whose stream 1 is open."""
    limits = SpdyLimits(stream_faults=2)
    made = Session(limits, HeaderReader(100, 10), Unread(UnreadLimits()))
    made.windows.open(1)
    made.unread.open(1)
    made.move(1, StreamState.OPEN)
    made.last_id = 5
    return made


def output(session: Session) -> list[tuple[Any, ...]]:
    return sent(b"".join(session.output))


def test_a_stream_is_known_by_its_id_alone_once_it_is_over(session: Session) -> None:
    """Odd ids up to the last one were streams; nothing is kept of them."""
    expected = {1: "open", 3: "closed", 5: "closed", 7: "idle", 2: "idle", 0: "idle"}

    assert {key: session.state(key).value for key in expected} == expected


def test_closing_forgets_a_stream(session: Session) -> None:
    """Also when it is closed twice."""
    session.move(1, StreamState.CLOSED)
    session.move(1, StreamState.CLOSED)

    assert session.streams == {}
    session.windows.widen(CONNECTION, 1)
    assert session.windows.room(1) == 0


def test_an_act_moves_a_live_stream_and_is_void_on_a_closed_one(session: Session) -> None:
    """The peer may have reset it a moment ago: that is no fault of ours."""
    assert session.act(1, StreamInput.WE_END)
    assert session.state(1) is StreamState.WE_ENDED
    assert not session.act(3, StreamInput.WE_SEND)
    with pytest.raises(WireError, match="can't send DATA on a stream that is we ended"):
        session.act(1, StreamInput.WE_SEND)


def test_a_fault_on_a_live_stream_is_told_to_both_sides(session: Session) -> None:
    """The peer by RST_STREAM, the server by an event; one never announced by RST_STREAM alone."""
    session.stream_fault(1, ResetStatus.PROTOCOL_ERROR)
    session.stream_fault(7, ResetStatus.INVALID_STREAM)

    assert session.events == [StreamReset(1, 1)]
    assert output(session) == [("RST", 1, 1), ("RST", 7, 2)]


def test_too_many_faults_end_the_connection(session: Session) -> None:
    """A peer may not make us answer nonsense for ever."""
    for _ in range(3):
        session.stream_fault(9, ResetStatus.INVALID_STREAM)

    assert session.failed
    assert session.events == [ConnectionFailed("more than 2 broken or refused streams")]
    assert output(session)[-1] == ("GOAWAY", 5, 1)


def test_a_connection_fails_once(session: Session) -> None:
    """And nothing can be done on it afterwards."""
    session.fail("first")
    session.fail("second")

    assert session.events == [ConnectionFailed("first")]
    assert output(session) == [("GOAWAY", 5, 1)]
    assert not session.act(7, StreamInput.WE_ACCEPT)


def test_windows_are_given_back_only_to_a_peer_that_keeps_them(session: Session) -> None:
    """To the others not a byte more than they expect."""
    session.unread.received(1, 20_000)
    session.unread.consumed(1, 20_000)

    session.send_updates()
    assert session.output == []
    session.windows.widen(1, 1)
    session.send_updates()

    assert output(session) == [("WINDOW", 0, 20_000), ("WINDOW", 1, 20_000)]
