"""The legacy port-forward over WebSocket: two channels for each port of the query."""

import pytest

from vk_provider.wire.channels import CLOSE_NORMAL
from vk_provider.wire.portforward import ForwardingData, ForwardingOpened, PortQueryError
from vk_provider.wire.portforward_websocket import WebSocketPortForward
from vk_provider.wire.remote_command import PeerGone

V4, V4_BASE64 = "v4.channel.k8s.io", "v4.base64.channel.k8s.io"


@pytest.fixture
def forward() -> WebSocketPortForward:
    """Ports 80 and 443, begun."""
    made = WebSocketPortForward(V4, [80, 443])
    made.begin()
    made.take_output()
    return made


def test_every_port_opens_at_once_and_is_named_on_both_channels() -> None:
    """2 bytes, little-endian."""
    forward = WebSocketPortForward(V4, [80, 443])

    assert forward.begin() == [ForwardingOpened(0, 80), ForwardingOpened(1, 443)]
    assert forward.take_output() == [b"\x00P\x00", b"\x01P\x00", b"\x02\xbb\x01", b"\x03\xbb\x01"]


def test_base64_is_text() -> None:
    """Channel digit, then base64."""
    forward = WebSocketPortForward(V4_BASE64, [80])
    forward.begin()

    assert forward.take_output() == ["0UAA=", "1UAA="]
    assert forward.feed("0Zm9v") == [ForwardingData(0, b"foo")]


def test_bytes_go_both_ways(forward: WebSocketPortForward) -> None:
    """Even channels."""
    assert forward.room(1) == 2**31 - 1
    forward.send(1, b"x")
    forward.send(1, b"")

    assert forward.take_output() == [b"\x02x"]
    assert forward.feed(b"\x02y") == [ForwardingData(1, b"y")]


@pytest.mark.parametrize("message", [b"", b"\x00", b"\x01x", b"\x04x", b"\xffx"])
def test_error_channels_unknown_ones_and_nothing_are_ignored(
    forward: WebSocketPortForward, message: bytes
) -> None:
    """As on a kubelet."""
    assert forward.feed(message) == []


def test_a_slow_port_holds_the_transport_back(forward: WebSocketPortForward) -> None:
    """Until its bytes were handed on."""
    forward.feed(b"\x00" + b"x" * 600_000)
    assert forward.paused

    forward.acknowledge(0, 600_000)

    assert not forward.paused


def test_it_is_done_when_every_forwarding_is_closed(forward: WebSocketPortForward) -> None:
    """Then the shell closes with 1000."""
    forward.feed(b"\x00" + b"x" * 600_000)
    forward.close(0)
    assert not forward.done
    assert not forward.paused
    assert forward.feed(b"\x00x") == []

    forward.close(1)

    assert forward.done
    assert forward.close_code == CLOSE_NORMAL
    assert forward.take_output() == []


def test_a_failure_is_told_on_the_error_channel_once(forward: WebSocketPortForward) -> None:
    """The data channel falls silent."""
    forward.close(1, "refused")
    forward.close(1, "again")
    forward.send(1, b"x")

    assert forward.take_output() == [b"\x03refused"]


def test_nothing_follows_the_clients_close(forward: WebSocketPortForward) -> None:
    """One PeerGone."""
    assert forward.feed_eof() == [PeerGone()]
    assert forward.feed_eof() == []
    assert forward.feed(b"\x00x") == []


@pytest.mark.parametrize(("protocol", "limit"), [(V4, 127), (V4_BASE64, 39)])
def test_more_ports_than_channels_are_refused(protocol: str, limit: int) -> None:
    """A channel is one byte, or one ASCII character."""
    forward = WebSocketPortForward(protocol, [80] * limit)
    forward.begin()

    assert all(isinstance(one, bytes) or one.isascii() for one in forward.take_output())
    with pytest.raises(PortQueryError, match=f"at most {limit}"):
        WebSocketPortForward(protocol, [80] * (limit + 1))
