"""Each frame in each state: a legal next state and its event, or a fault that is answered."""

import itertools
from collections.abc import Callable

import pytest

from tests.unit.wire.peer import (
    FIN,
    GOAWAY,
    UNIDIRECTIONAL,
    Peer,
    control,
    data,
    go_away,
    rst,
    sent,
    settings,
    window,
    words,
)
from vk_provider.wire.spdy import SpdyConnection
from vk_provider.wire.spdy_flow import UnreadLimits
from vk_provider.wire.spdy_session import (
    ConnectionFailed,
    DataReceived,
    GoAwayReceived,
    SpdyLimits,
    StreamEnded,
    StreamOpened,
    StreamReset,
    WindowOpened,
)
from vk_provider.wire.spdy_states import StreamInput, StreamState, peer_moves, violation

LIMITS = SpdyLimits(streams=4, stream_faults=20)


class Rig:
    """A connection and its peer, with stream 1 (or 99, never opened) in a wanted state."""

    def __init__(self, state: StreamState = StreamState.OPEN) -> None:
        self.peer = Peer()
        self.connection = SpdyConnection(LIMITS)
        if state is not StreamState.IDLE:
            self.connection.feed(self.peer.syn(1))
            self._bring(state)
        assert self.connection.state(1) is state
        self.connection.take_output()

    def _bring(self, state: StreamState) -> None:
        if state not in (StreamState.OPENED, StreamState.OPENED_ENDED):
            self.connection.accept(1)
        if state in (StreamState.OPENED_ENDED, StreamState.PEER_ENDED, StreamState.CLOSED):
            self.connection.feed(data(1, flags=FIN))
        if state in (StreamState.WE_ENDED, StreamState.CLOSED):
            self.connection.finish(1)


FRAMES: dict[StreamInput, list[Callable[[Peer], bytes]]] = {
    StreamInput.PEER_OPENS: [lambda peer: peer.syn(1)],
    StreamInput.PEER_SENDS: [lambda _: data(1, b"x"), lambda peer: peer.headers(1)],
    StreamInput.PEER_ENDS: [lambda _: data(1, flags=FIN), lambda peer: peer.headers(1, FIN)],
    StreamInput.PEER_RESETS: [lambda _: rst(1)],
    StreamInput.PEER_REPLIES: [lambda peer: control(2, words(1) + peer.pack(words(0)))],
    StreamInput.PEER_WIDENS: [lambda _: window(1, 1)],
}
CASES = [
    (state, peer_input, frame)
    for (peer_input, frames), state in itertools.product(FRAMES.items(), StreamState)
    for frame in frames
]


@pytest.mark.parametrize(("state", "peer_input", "frame"), CASES)
def test_every_frame_in_every_state_does_what_the_table_says(
    state: StreamState, peer_input: StreamInput, frame: Callable[[Peer], bytes]
) -> None:
    """The legal next state, a RST_STREAM that closes the stream, or a GOAWAY that closes all."""
    rig = Rig(state)
    after, status = peer_moves(state, peer_input), violation(state, peer_input)

    events = rig.connection.feed(frame(rig.peer))

    answers = sent(rig.connection.take_output())
    if after is not None:
        assert rig.connection.state(1) is after
        assert answers == []
    elif status is None:
        assert isinstance(events[-1], ConnectionFailed)
        assert answers[-1][::2] == ("GOAWAY", 1)
    else:
        assert rig.connection.state(1) in (StreamState.CLOSED, StreamState.IDLE)
        assert answers == [("RST", 1, status)]


def test_the_life_of_a_stream_in_events() -> None:
    """Opened, data, ended: each once."""
    rig = Rig(StreamState.IDLE)

    events = rig.connection.feed(rig.peer.syn(1, 0, streamtype="stdin"))
    events += rig.connection.feed(data(1, b"ab") + data(1) + data(1, b"c", FIN))

    assert events == [
        StreamOpened(1, {"streamtype": "stdin"}),
        DataReceived(1, b"ab"),
        DataReceived(1, b"c"),
        StreamEnded(1),
    ]


def test_a_stream_may_be_opened_and_ended_at_once() -> None:
    """FLAG_FIN on SYN_STREAM."""
    rig = Rig(StreamState.IDLE)

    events = rig.connection.feed(rig.peer.syn(1, FIN))

    assert events == [StreamOpened(1, {}), StreamEnded(1)]


def test_a_repeated_id_kills_the_stream_that_has_it() -> None:
    """The peer takes our RST_STREAM for that stream, so it is over here as well."""
    rig = Rig()

    assert rig.connection.feed(rig.peer.syn(1)) == [StreamReset(1, 1)]
    assert rig.connection.state(1) is StreamState.CLOSED


@pytest.mark.parametrize("stream_id", [1, 2])
def test_a_falling_or_even_id_is_refused(stream_id: int) -> None:
    """A client's ids are odd and rise."""
    rig = Rig(StreamState.IDLE)
    rig.connection.feed(rig.peer.syn(5))

    assert rig.connection.feed(rig.peer.syn(stream_id)) == []
    assert sent(rig.connection.take_output()) == [("RST", stream_id, 1)]


def test_streams_beyond_the_limit_are_refused_and_their_headers_still_read() -> None:
    """Later blocks depend on every block before."""
    rig = Rig(StreamState.IDLE)
    for stream_id in (1, 3, 5, 7):
        rig.connection.feed(rig.peer.syn(stream_id, 0, port="80"))

    refused = rig.connection.feed(rig.peer.syn(9, 0, port="80"))
    rig.connection.reset(1)
    rig.connection.take_output()

    assert refused == []
    assert rig.connection.feed(rig.peer.syn(11, 0, port="80")) == [StreamOpened(11, {"port": "80"})]


def test_a_unidirectional_stream_is_refused() -> None:
    """Nobody in Kubernetes opens one, and it could not be answered."""
    rig = Rig(StreamState.IDLE)

    assert rig.connection.feed(rig.peer.syn(1, UNIDIRECTIONAL)) == []
    assert sent(rig.connection.take_output()) == [("RST", 1, 3)]


@pytest.mark.parametrize(
    "frame", [control(1, words(1, 0) + b"\0\0xx"), control(8, words(1) + b"xx")]
)
def test_a_broken_header_block_ends_the_connection(frame: bytes) -> None:
    """Every later block would be broken, too."""
    rig = Rig()

    failed = rig.connection.feed(frame + data(1, b"x"))

    assert [type(event) for event in failed] == [ConnectionFailed]
    assert sent(rig.connection.take_output()) == [("GOAWAY", 1, 1)]
    assert rig.connection.feed(rig.peer.syn(3)) == []


def test_a_broken_frame_ends_the_connection() -> None:
    """With the reader's words."""
    rig = Rig()

    assert rig.connection.feed(control(5, b"")) == [
        ConnectionFailed("unknown control frame type 5")
    ]


def test_a_fault_is_answered_once_for_a_frame_in_many_pieces() -> None:
    """Splitting changes nothing."""
    rig = Rig(StreamState.IDLE)

    for byte in data(99, b"abcdef", FIN):
        rig.connection.feed(bytes([byte]))

    assert sent(rig.connection.take_output()) == [("RST", 99, 2)]


def test_data_for_a_closed_stream_is_dropped_and_gives_back_the_window() -> None:
    """It was on its way when the stream was reset."""
    rig = Rig()
    rig.connection.feed(window(1, 1))
    rig.connection.reset(1)
    rig.connection.take_output()

    assert rig.connection.feed(data(1, b"x" * 20_000, FIN)) == []
    assert sent(rig.connection.take_output()) == [("WINDOW", 0, 20_000)]


def test_a_stream_that_overflows_is_reset() -> None:
    """Only a shell that ignores `paused` meets it."""
    connection = SpdyConnection(SpdyLimits(unread=UnreadLimits(10, 20, 1000, 1000)))
    connection.feed(Peer().syn(1))

    events = connection.feed(data(1, b"x" * 21, FIN))

    assert events == [DataReceived(1, b"x" * 21), StreamReset(1, 7)]
    assert sent(connection.take_output()) == [("RST", 1, 7)]


def test_a_connection_that_overflows_ends() -> None:
    """Each of its streams may still have room."""
    connection, peer = SpdyConnection(SpdyLimits(unread=UnreadLimits(50, 50, 60, 60))), Peer()
    connection.feed(peer.syn(1) + peer.syn(3))

    events = connection.feed(data(1, b"x" * 40) + data(3, b"x" * 40, FIN))

    assert isinstance(events[-1], ConnectionFailed)


def test_the_peers_reset_is_an_event_while_the_stream_lives() -> None:
    """The second one says nothing new."""
    rig = Rig()

    assert rig.connection.feed(rst(1, 5) + rst(1, 5)) == [StreamReset(1, 5)]


def test_pings_of_the_client_are_echoed() -> None:
    """Even ids would be answers to our own, which we never send."""
    rig = Rig()

    rig.connection.feed(control(6, words(7)) + control(6, words(2)))

    assert sent(rig.connection.take_output()) == [("PING", 7)]


def test_after_go_away_no_stream_is_opened() -> None:
    """The event comes once; streams that are open go on."""
    rig = Rig()

    events = rig.connection.feed(go_away() + go_away() + rig.peer.syn(3) + data(1, b"x"))

    assert events == [GoAwayReceived(0), DataReceived(1, b"x")]


def test_settings_and_updates_open_windows() -> None:
    """Other settings mean nothing to us."""
    rig = Rig()

    assert rig.connection.feed(settings((4, 100))) == []
    assert rig.connection.feed(settings((4, 100), (7, 1000))) == [WindowOpened()]
    assert rig.connection.feed(window(1, 5)) == [WindowOpened()]
    assert rig.connection.room(1) == 1005


@pytest.mark.parametrize(
    "frame", [settings((7, 0xFFFF_FFFF)), window(0, 0), window(0, 0x7FFF_FFFF)]
)
def test_an_impossible_window_of_the_connection_ends_it(frame: bytes) -> None:
    """There is no stream to blame."""
    rig = Rig()

    assert isinstance(rig.connection.feed(frame)[-1], ConnectionFailed)


def test_an_impossible_window_of_a_stream_resets_it() -> None:
    """FLOW_CONTROL_ERROR."""
    rig = Rig()

    assert rig.connection.feed(window(1, 0)) == [StreamReset(1, 7)]


def test_a_go_away_frame_is_recorded_as_type_7() -> None:
    """The draft's number, which the rig relies on."""
    assert go_away()[3] == GOAWAY
