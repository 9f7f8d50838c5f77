"""One SPDY connection as the server uses it: acts become bytes in one order, and none too early."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.wire import recorded
from tests.unit.wire.peer import FIN, Peer, control, cut, data, go_away, rst, sent, window, words
from vk_provider.faults import WireError
from vk_provider.wire.spdy import SpdyConnection
from vk_provider.wire.spdy_frames import ResetStatus
from vk_provider.wire.spdy_headers import HeaderReader
from vk_provider.wire.spdy_session import DataReceived, SpdyEvent, StreamOpened
from vk_provider.wire.spdy_states import StreamState


@pytest.fixture
def connection() -> SpdyConnection:
    """A connection with stream 1 accepted."""
    made = SpdyConnection()
    made.feed(Peer().syn(1))
    made.accept(1)
    made.take_output()
    return made


def test_nothing_is_sent_before_the_peers_first_frame() -> None:
    """client-go loses what it over-reads behind the 101."""
    assert SpdyConnection().take_output() == b""


def test_output_is_given_once(connection: SpdyConnection) -> None:
    """The transport owns it then."""
    connection.send(1, b"x")

    assert connection.take_output() == data(1, b"x")
    assert connection.take_output() == b""


def test_accepting_sends_a_reply_without_headers() -> None:
    """Its blocks share one zlib stream."""
    connection, peer, reader = SpdyConnection(), Peer(), HeaderReader(100, 10)
    for stream_id in (1, 3):
        connection.feed(peer.syn(stream_id))
        connection.accept(stream_id)
        output = connection.take_output()
        assert sent(output) == [("REPLY", stream_id)]
        assert reader.read(output[12:]) == {}


def test_long_payloads_go_out_in_frames_of_32_kib(connection: SpdyConnection) -> None:
    """So that streams take turns."""
    connection.send(1, b"x" * 70_000)

    frames = sent(connection.take_output())

    assert [len(frame[2]) for frame in frames] == [32768, 32768, 4464]


def test_sending_nothing_sends_nothing(connection: SpdyConnection) -> None:
    """An empty DATA frame would mean nothing."""
    connection.send(1, b"")

    assert connection.take_output() == b""


def test_finishing_half_closes(connection: SpdyConnection) -> None:
    """The peer may send on, we may not."""
    connection.finish(1)

    assert connection.take_output() == data(1, flags=FIN)
    assert connection.feed(data(1, b"x")) == [DataReceived(1, b"x")]
    with pytest.raises(WireError, match="can't send DATA on a stream that is we ended"):
        connection.send(1, b"x")


def test_resetting_ends_both_directions(connection: SpdyConnection) -> None:
    """CANCEL unless another reason is given."""
    connection.reset(1)
    connection.reset(1, ResetStatus.INTERNAL_ERROR)

    assert sent(connection.take_output()) == [("RST", 1, 5)]
    assert connection.state(1) is StreamState.CLOSED


def test_acts_on_a_stream_that_the_peer_has_reset_do_nothing(connection: SpdyConnection) -> None:
    """The command does not know yet."""
    connection.feed(rst(1))

    connection.accept(1)
    connection.send(1, b"x")
    connection.finish(1)
    connection.reset(1)

    assert connection.take_output() == b""


def test_acts_on_a_stream_that_never_was_are_our_fault(connection: SpdyConnection) -> None:
    """A wrong id is a bug and says so."""
    with pytest.raises(WireError, match="can't send SYN_REPLY on a stream that is idle"):
        connection.accept(3)


def test_reading_pauses_until_the_server_has_acknowledged(connection: SpdyConnection) -> None:
    """Half a MiB a stream; the peer is held back by TCP."""
    connection.feed(data(1, b"x" * 600_000))
    assert connection.paused

    connection.acknowledge(1, 100_000)

    assert not connection.paused


def test_acknowledging_without_a_size_takes_everything(connection: SpdyConnection) -> None:
    """For input that nobody wants."""
    connection.feed(data(1, b"x" * 900_000))

    connection.acknowledge(1)

    assert not connection.paused


def test_windows_are_returned_to_a_peer_that_keeps_them(connection: SpdyConnection) -> None:
    """For the stream and for the connection."""
    connection.feed(window(1, 1) + data(1, b"x" * 20_000))
    assert connection.take_output() == b""

    connection.acknowledge(1, 20_000)

    assert sent(connection.take_output()) == [("WINDOW", 0, 20_000), ("WINDOW", 1, 20_000)]


def test_room_is_what_the_peers_window_leaves(connection: SpdyConnection) -> None:
    """64 KiB to begin with, for peers that keep windows."""
    assert connection.room(1) > 2**30
    connection.feed(window(1, 1))

    connection.send(1, b"x" * 65_000)

    assert connection.room(1) == 65536 - 65_000


def run(chunks: Sequence[bytes]) -> tuple[list[SpdyEvent], bytes]:
    """Feed, accept every stream at once, join the data of each; events and output."""
    connection = SpdyConnection()
    events: list[SpdyEvent] = []
    for event in (event for chunk in chunks for event in connection.events(chunk)):
        last = events[-1] if events else None
        if (
            isinstance(event, DataReceived)
            and isinstance(last, DataReceived)
            and event.stream_id == last.stream_id
        ):
            events[-1] = DataReceived(last.stream_id, last.payload + event.payload)
        else:
            events.append(event)
        if isinstance(event, StreamOpened):
            connection.accept(event.stream_id)
    return events, connection.take_output()


@pytest.mark.parametrize("raw", [recorded.EXEC, recorded.TTY, recorded.FORWARD, recorded.CLOSE])
def test_recorded_bytes_one_by_one_give_the_same_events(raw: bytes) -> None:
    """As Go sends them: one segment had a single byte."""
    assert run([bytes([byte]) for byte in raw]) == run([raw])


ACTS = st.one_of(
    st.tuples(st.just("syn"), st.integers(0, 9), st.integers(0, 3)),
    st.tuples(st.just("headers"), st.integers(1, 9), st.integers(0, 1)),
    st.tuples(st.just("data"), st.integers(0, 9), st.integers(0, 1)),
    st.tuples(st.just("rst"), st.integers(1, 9), st.integers(1, 11)),
    st.tuples(st.just("window"), st.integers(0, 9), st.integers(0, 70_000)),
    st.tuples(st.just("ping"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("away"), st.just(0), st.just(0)),
    st.tuples(st.just("settings"), st.integers(1, 8), st.integers(0, 70_000)),
)


def act(peer: Peer, name: str, first: int, second: int) -> bytes:
    """The bytes of one thing that a peer does, legal or not."""
    match name:
        case "syn":
            return peer.syn(first, second, port="80")
        case "headers":
            return peer.headers(first, second)
        case "data":
            return data(first, b"abc", second)
        case "rst":
            return rst(first, second)
        case "window":
            return window(first, second)
        case _:
            return rare(name, first, second)


def rare(name: str, first: int, second: int) -> bytes:
    """The acts that belong to no stream."""
    if name == "settings":
        return control(4, words(1, first, second))
    return control(6, words(first)) if name == "ping" else go_away()


def written(acts: Sequence[tuple[str, int, int]]) -> bytes:
    """The bytes of a peer that does these things in this order."""
    peer = Peer()
    return b"".join(act(peer, *one) for one in acts)


@settings(max_examples=60)
@given(st.lists(ACTS, max_size=12), st.lists(st.integers(0, 1000), max_size=8))
def test_bytes_cut_anywhere_give_the_same_events_and_answers(
    acts: list[tuple[str, int, int]], places: list[int]
) -> None:
    """Whatever the peer does."""
    raw = written(acts)

    assert run(cut(raw, places)) == run([raw])


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_nonsense_cut_anywhere_gives_the_same_events(raw: bytes, places: list[int]) -> None:
    """And raises nothing."""
    assert run(cut(raw, places)) == run([raw])


def test_many_streams_one_after_the_other_leave_nothing_behind(connection: SpdyConnection) -> None:
    """A port-forward lives for hours."""
    peer = Peer()
    made = SpdyConnection()
    for stream_id in range(1, 2001, 2):
        made.feed(peer.syn(stream_id) + data(stream_id, b"x", FIN))
        made.accept(stream_id)
        made.acknowledge(stream_id, 1)
        made.finish(stream_id)
        made.take_output()

    assert made.state(1999) is StreamState.CLOSED
    assert not made.paused
