"""Exec and attach over SPDY: the streams, the input, the order of the end."""

import pytest

from tests.unit.wire import recorded
from tests.unit.wire.peer import FIN, Peer, control, data, go_away, rst, sent, window
from vk_provider.wire.outcome import SUCCESS, Exited, Failed
from vk_provider.wire.remote_command import (
    Output,
    PeerGone,
    Ready,
    RoomAgain,
    StdinClosed,
    StdinData,
    StreamOptions,
)
from vk_provider.wire.remote_command_spdy import SpdyRemoteCommand
from vk_provider.wire.resize import Resize

V4 = "v4.channel.k8s.io"
ALL = StreamOptions(stdin=True, stdout=True, stderr=True)
STATUS = b'{"metadata":{},"status":"Success"}'


def opened(
    *types: str, options: StreamOptions = ALL, protocol: str = V4
) -> tuple[SpdyRemoteCommand, Peer]:
    """A command whose client has opened streams 1, 3, 5 … of these types."""
    command, peer = SpdyRemoteCommand(protocol, options), Peer()
    command.begin()
    for index, name in enumerate(types):
        command.feed(peer.syn(2 * index + 1, 0, streamtype=name))
    command.take_output()
    return command, peer


@pytest.fixture
def command() -> SpdyRemoteCommand:
    """All of error 1, stdin 3, stdout 5, stderr 7 are open."""
    return opened("error", "stdin", "stdout", "stderr")[0]


def test_a_recorded_exec_is_ready_with_its_last_stream() -> None:
    """Each SYN_STREAM is answered before the next one comes."""
    command = SpdyRemoteCommand(V4, StreamOptions(stdout=True, stderr=True))

    events = [event for byte in recorded.EXEC for event in command.feed(bytes([byte]))]

    assert events == [Ready()]
    assert sent(command.take_output()) == [("REPLY", 1), ("REPLY", 3), ("REPLY", 5)]


def test_a_recorded_session_ends_once() -> None:
    """RST_STREAM for each stream, then GOAWAY: one PeerGone."""
    command = SpdyRemoteCommand(V4, StreamOptions(stdout=True, stderr=True))

    events = command.feed(recorded.EXEC + recorded.CLOSE)

    assert events == [Ready(), PeerGone()]
    assert command.feed(b"anything") == []


@pytest.mark.parametrize(
    ("protocol", "types"),
    [
        ("v4.channel.k8s.io", ["error", "stdin", "stdout", "resize"]),
        ("v3.channel.k8s.io", ["error", "stdin", "stdout", "resize"]),
        ("v2.channel.k8s.io", ["error", "stdin", "stdout"]),
        ("channel.k8s.io", ["error", "stdin", "stdout"]),
    ],
)
def test_a_terminal_waits_for_its_resize_stream_from_v3_on(protocol: str, types: list[str]) -> None:
    """Older protocols have none."""
    options = StreamOptions(stdin=True, stdout=True, tty=True)
    command, peer = opened(*types[:-1], options=options, protocol=protocol)

    assert command.feed(peer.syn(99, 0, streamtype=types[-1])) == [Ready()]


def test_input_reaches_the_command_and_is_acknowledged(command: SpdyRemoteCommand) -> None:
    """The transport pauses while nobody takes it."""
    events = command.feed(data(3, b"x" * 600_000))
    assert events == [StdinData(b"x" * 600_000)]
    assert command.paused

    command.acknowledge(600_000)

    assert not command.paused


def test_input_ends_by_half_close_or_by_reset(command: SpdyRemoteCommand) -> None:
    """Either way the command must see an end."""
    other = opened("error", "stdin", "stdout", "stderr")[0]

    assert command.feed(data(3, b"", FIN)) == [StdinClosed()]
    assert other.feed(rst(3)) == [StdinClosed()]
    assert command.feed(rst(3)) == []


def test_input_that_comes_before_the_last_stream_waits_for_it() -> None:
    """Ready is the first event."""
    command, peer = opened("error", "stdin", "stdout")

    assert command.feed(data(3, b"early", FIN)) == []
    ready = command.feed(peer.syn(7, 0, streamtype="stderr"))
    assert ready == [Ready(), StdinData(b"early"), StdinClosed()]


def test_resizes_of_a_terminal_are_events() -> None:
    """The first one usually right behind the streams."""
    options = StreamOptions(stdin=True, stdout=True, tty=True)
    command = SpdyRemoteCommand(V4, options)

    assert command.feed(recorded.TTY) == [Ready()]
    assert command.feed(data(7, b'{"width":80,"height":24}')) == [Resize(80, 24)]


def test_streams_that_nobody_asked_for_are_accepted_and_silent() -> None:
    """As on a kubelet; what comes on them is dropped, not dammed up."""
    command, peer = opened("error", "stdout", options=StreamOptions(stdout=True))

    events = command.feed(peer.syn(5, 0, streamtype="stdin") + data(5, b"x" * 600_000))

    assert events == []
    assert sent(command.take_output()) == [("REPLY", 5)]
    assert not command.paused


@pytest.mark.parametrize("name", ["stdin", "sideways", ""])
def test_a_type_twice_or_unknown_is_refused(name: str) -> None:
    """A clear answer instead of a session that hangs."""
    command, peer = opened("error", "stdin")

    assert command.feed(peer.syn(5, 0, streamtype=name) if name else peer.syn(5)) == []
    assert sent(command.take_output()) == [("RST", 5, 3)]


def test_the_end_comes_in_the_kubelets_order(command: SpdyRemoteCommand) -> None:
    """Outputs first, then the status, then our side of the input."""
    command.send(Output.STDOUT, b"out")
    command.send(Output.STDERR, b"err")
    command.finish(SUCCESS)
    command.finish(Failed("again"))
    command.send(Output.STDOUT, b"late")

    assert sent(command.take_output()) == [
        ("DATA", 5, b"out", False),
        ("DATA", 7, b"err", False),
        ("DATA", 5, b"", True),
        ("DATA", 7, b"", True),
        ("DATA", 1, STATUS, False),
        ("DATA", 1, b"", True),
        ("DATA", 3, b"", True),
    ]


def test_before_v4_the_error_stream_has_text_or_nothing() -> None:
    """Nothing means success."""
    for outcome, text in ((SUCCESS, []), (Failed("x"), [b"Internal error occurred: x"])):
        options = StreamOptions(stdout=True)
        command, _ = opened("error", "stdout", options=options, protocol="v3.channel.k8s.io")
        command.finish(outcome)
        frames = sent(command.take_output())
        assert [frame[2] for frame in frames if frame[1] == 1 and frame[2]] == text


def test_a_client_that_opens_too_few_streams_is_told(command: SpdyRemoteCommand) -> None:
    """The shell's 30 seconds are over; what is there gets the message."""
    late, _ = opened("error", "stdin")

    late.finish(Failed("timed out waiting for client to create streams"))

    error = [frame for frame in sent(late.take_output()) if frame[1] == 1]
    assert b"timed out waiting for client" in error[0][2]


def test_after_the_end_input_is_discarded_until_the_client_closes() -> None:
    """It must not dam up the close that is waited for."""
    command, peer = opened("error", "stdin", "stdout", "stderr")
    command.feed(data(3, b"x" * 600_000))
    command.finish(Exited(1))
    command.take_output()

    assert not command.paused
    assert command.feed(data(3, b"x" * 600_000)) == []
    assert not command.paused
    assert command.feed(peer.syn(9, 0, streamtype="resize") + rst(3)) == []
    assert sent(command.take_output()) == [("RST", 9, 3)]
    assert command.feed(rst(1) + go_away()) == [PeerGone()]


def test_a_reset_error_stream_is_a_client_that_left(command: SpdyRemoteCommand) -> None:
    """Nobody would learn how the command ends; a reset output is only silent."""
    assert command.feed(rst(5)) == []
    command.send(Output.STDOUT, b"x")
    assert command.take_output() == b""
    assert command.feed(data(1, b"", FIN)) == []
    assert command.feed(rst(1)) == [PeerGone()]


def test_a_broken_peer_is_gone_with_a_reason(command: SpdyRemoteCommand) -> None:
    """And gets a GOAWAY."""
    assert command.feed(control(5, b"")) == [PeerGone("unknown control frame type 5")]
    assert sent(command.take_output()) == [("GOAWAY", 7, 1)]
    assert command.feed_eof() == []


def test_room_follows_a_peer_that_keeps_windows(command: SpdyRemoteCommand) -> None:
    """No peer of Kubernetes does."""
    assert command.feed(window(5, 1)) == [RoomAgain()]
    assert command.room(Output.STDOUT) == 65536
