"""Exec and attach over WebSocket: channels in messages, raw and base64, v1 to v5."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vk_provider.wire.channels import (
    CLOSE_NORMAL,
    CLOSE_PROTOCOL_ERROR,
    ChannelCodec,
    Message,
    WebSocketRemoteCommand,
)
from vk_provider.wire.negotiation import WEBSOCKET_COMMAND_PROTOCOLS
from vk_provider.wire.outcome import SUCCESS, Exited, Failed
from vk_provider.wire.remote_command import (
    Output,
    PeerGone,
    Ready,
    StdinClosed,
    StdinData,
    StreamOptions,
)
from vk_provider.wire.resize import Resize

V5, V4, V4_BASE64 = "v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"
ALL = StreamOptions(stdin=True, stdout=True, stderr=True)


def begun(protocol: str = V5, options: StreamOptions = ALL) -> WebSocketRemoteCommand:
    """A command that has sent its first message."""
    command = WebSocketRemoteCommand(protocol, options)
    assert command.begin() == [Ready()]
    command.take_output()
    return command


@given(st.booleans(), st.integers(0, 9), st.binary(max_size=100))
def test_what_is_encoded_decodes(base64: bool, channel: int, payload: bytes) -> None:
    """In either form."""
    codec = ChannelCodec(base64)

    assert [codec.decode(one) for one in codec.encode(channel, payload)] == [(channel, payload)]


@given(st.booleans(), st.one_of(st.binary(max_size=50), st.text(max_size=50)))
def test_no_message_breaks_the_codec(base64: bool, message: Message) -> None:
    """Channel and payload, or nothing."""
    decoded = ChannelCodec(base64).decode(message)

    assert decoded is None or 0 <= decoded[0] <= 255


def test_long_payloads_go_out_in_messages_of_32_kib() -> None:
    """Each with its channel."""
    messages = ChannelCodec().encode(1, b"x" * 70_000)

    assert [len(message) for message in messages] == [32769, 32769, 4465]


@pytest.mark.parametrize("message", [b"", "", "0!", "0Zg=", "0Zg==Zg=="])
def test_what_a_kubelet_ignores_is_ignored(message: Message) -> None:
    """Nothing in it, or bad base64."""
    assert ChannelCodec(base64=True).decode(message) is None


def test_base64_may_have_line_ends() -> None:
    """Go's decoder skips them."""
    assert ChannelCodec(base64=True).decode("0Zm\r\n9v\n") == (0, b"foo")


@pytest.mark.parametrize("protocol", WEBSOCKET_COMMAND_PROTOCOLS)
def test_every_protocol_carries_input_and_output(protocol: str) -> None:
    """Text for base64, bytes for the raw ones."""
    command = begun(protocol)
    text = "base64" in protocol

    command.send(Output.STDOUT, b"hi\n")

    assert command.take_output() == ["1aGkK" if text else b"\x01hi\n"]
    assert command.feed("0Zm9v" if text else b"\x00foo") == [StdinData(b"foo")]


@pytest.mark.parametrize(
    ("options", "first"),
    [
        (ALL, b"\x01"),
        (StreamOptions(stdin=True, stderr=True), b"\x02"),
        (StreamOptions(stdin=True), b"\x03"),
    ],
)
def test_an_empty_message_on_the_lowest_channel_says_connected(
    options: StreamOptions, first: bytes
) -> None:
    """Clients wait for it."""
    command = WebSocketRemoteCommand(V5, options)
    command.begin()

    assert command.take_output() == [first]


def test_v5_closes_input_once() -> None:
    """What comes behind the close is dropped."""
    command = begun()

    assert command.feed(b"\xff\x00") == [StdinClosed()]
    assert command.feed(b"\xff\x00") == []
    assert command.feed(b"\x00late") == []


def test_before_v5_input_has_no_end() -> None:
    """255 is a channel that does not exist."""
    assert begun(V4).feed(b"\xff\x00") == []


@pytest.mark.parametrize("channel", [1, 2, 3, 4])
def test_closing_another_channel_means_nothing(channel: int) -> None:
    """Clients close only what they write."""
    assert begun().feed(bytes([255, channel])) == []


@pytest.mark.parametrize("message", [b"\xff", b"\xff\x05", b"\xff\x00\x00"])
def test_a_malformed_close_signal_ends_the_session(message: bytes) -> None:
    """With the code of a protocol error."""
    command = begun()

    events = command.feed(message)

    fault = "a close signal is the byte 255 and one channel from 0 to 4"
    assert events == [PeerGone(fault)]
    assert command.close_code == CLOSE_PROTOCOL_ERROR
    assert command.feed(b"\x00x") == []


def test_resizes_are_events() -> None:
    """On channel 4."""
    assert begun().feed(b'\x04{"Width":80,"Height":24}') == [Resize(80, 24)]


@pytest.mark.parametrize("message", [b"\x01x", b"\x03x", b"\x05x", b"\xfex", b"\x00"])
def test_other_channels_and_empty_input_are_ignored(message: bytes) -> None:
    """A client has nothing to say there."""
    assert begun().feed(message) == []


def test_input_that_nobody_asked_for_is_dropped() -> None:
    """There is no stdin to give it to."""
    assert begun(options=StreamOptions(stdout=True)).feed(b"\x00x") == []


def test_output_that_nobody_asked_for_is_dropped() -> None:
    """As on a kubelet."""
    command = begun(options=StreamOptions(stdout=True))

    command.send(Output.STDERR, b"x")
    command.send(Output.STDOUT, b"")

    assert command.take_output() == []


def test_a_long_message_is_handed_on_in_pieces_and_pauses() -> None:
    """The next one is not read until this one is consumed."""
    command = begun()

    events = command.feed(b"\x00" + b"x" * 600_000)

    assert len(events) == 19
    assert command.paused
    command.acknowledge(600_000)
    assert not command.paused


@pytest.mark.parametrize(
    ("protocol", "messages"),
    [
        (V5, [b'\x03{"metadata":{},"status":"Success"}']),
        (V4_BASE64, ["3eyJtZXRhZGF0YSI6e30sInN0YXR1cyI6IlN1Y2Nlc3MifQ=="]),
        ("channel.k8s.io", []),
    ],
)
def test_the_end_is_the_outcome_and_a_normal_close(protocol: str, messages: list[Message]) -> None:
    """Any other code is an error to the client."""
    command = begun(protocol)

    command.finish(SUCCESS)
    command.finish(Failed("again"))
    command.send(Output.STDOUT, b"late")

    assert command.take_output() == messages
    assert command.close_code == CLOSE_NORMAL


def test_after_the_end_input_is_discarded() -> None:
    """Only the client's close matters."""
    command = begun()
    command.feed(b"\x00" + b"x" * 600_000)

    command.finish(Exited(1))

    assert not command.paused
    assert command.feed(b"\x00x") == []
    assert command.feed(b"\xff\x00") == []
    assert command.feed_eof() == [PeerGone()]
    assert command.feed_eof() == []


def test_a_websocket_has_no_window() -> None:
    """The transport alone holds the command back."""
    assert begun().room(Output.STDOUT) == 2**31 - 1
