"""Port-forward over SPDY: pairs found in any order, each with its own end."""

import pytest

from tests.unit.wire import recorded
from tests.unit.wire.peer import FIN, Peer, data, go_away, rst, sent, window
from vk_provider.wire.portforward import (
    ForwardingData,
    ForwardingEnded,
    ForwardingLost,
    ForwardingOpened,
    PairStarted,
)
from vk_provider.wire.portforward_spdy import SpdyPortForward
from vk_provider.wire.remote_command import PeerGone, RoomAgain


class Rig:
    """A port-forward and its client."""

    def __init__(self) -> None:
        self.forward = SpdyPortForward()
        self.peer = Peer()
        assert self.forward.begin() == []

    def syn(self, stream_id: int, kind: str, request: str = "0", port: str = "80") -> bytes:
        return self.peer.syn(stream_id, 0, streamtype=kind, port=port, requestid=request)

    def pair(self) -> SpdyPortForward:
        """Forwarding 3, whose error stream is 1 and half-closed, as kubectl makes it."""
        self.forward.feed(self.syn(1, "error") + data(1, flags=FIN) + self.syn(3, "data"))
        self.forward.take_output()
        return self.forward


@pytest.fixture
def rig() -> Rig:
    """Nothing opened yet."""
    return Rig()


@pytest.fixture
def forward(rig: Rig) -> SpdyPortForward:
    """Forwarding 3 to port 80 is open."""
    return rig.pair()


def test_a_recorded_forwarding_opens_and_carries_its_request() -> None:
    """Byte by byte, as it may come."""
    forward = SpdyPortForward()

    events = [event for byte in recorded.FORWARD for event in forward.feed(bytes([byte]))]

    assert events[:2] == [PairStarted("0"), ForwardingOpened(3, 29801, "0")]
    payload = b"".join(one.payload for one in events if isinstance(one, ForwardingData))
    assert payload.startswith(b"GET / HTTP/1.1\r\n")
    assert sent(forward.take_output()) == [("REPLY", 1), ("REPLY", 3)]


def test_pairs_interleave(rig: Rig) -> None:
    """kubectl opens 1, 3, 5 as error streams before the data streams 7, 9, 11."""
    opened = [
        *rig.forward.feed(rig.syn(1, "error", "a") + rig.syn(3, "error", "b")),
        *rig.forward.feed(rig.syn(5, "data", "b", "81") + rig.syn(7, "data", "a")),
    ]

    assert opened[2:] == [ForwardingOpened(5, 81, "b"), ForwardingOpened(7, 80, "a")]


def test_the_data_stream_may_come_first_and_its_bytes_wait(rig: Rig) -> None:
    """The port is dialled when the pair is complete."""
    early = rig.forward.feed(rig.syn(1, "data") + data(1, b"x", FIN))

    events = rig.forward.feed(rig.syn(3, "error"))

    assert early == [PairStarted("0")]
    opened = ForwardingOpened(1, 80, "0")
    assert events == [opened, ForwardingData(1, b"x"), ForwardingEnded(1)]


def test_without_a_request_id_the_pair_is_found_by_its_ids(rig: Rig) -> None:
    """Old clients: the data stream is the error stream + 2."""
    rig.forward.feed(rig.peer.syn(5, 0, streamtype="error", port="80"))

    events = rig.forward.feed(rig.peer.syn(7, 0, streamtype="data", port="80"))

    assert events == [ForwardingOpened(7, 80, "5")]


def test_a_request_id_may_be_used_again_for_another_pair(rig: Rig) -> None:
    """It only joins the two."""
    rig.pair()

    assert rig.forward.feed(rig.syn(5, "error")) == [PairStarted("0")]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"port": "80"},
        {"streamtype": "data"},
        {"streamtype": "data", "port": "0"},
        {"streamtype": "data", "port": "http"},
        {"streamtype": "resize", "port": "80"},
    ],
)
def test_a_stream_without_a_port_or_type_is_refused(rig: Rig, headers: dict[str, str]) -> None:
    """RST_STREAM, and the rest goes on."""
    assert rig.forward.feed(rig.peer.syn(1, 0, **headers)) == []
    assert sent(rig.forward.take_output()) == [("RST", 1, 1)]


@pytest.mark.parametrize("kind", ["error", "data"])
def test_the_same_half_twice_is_refused(rig: Rig, kind: str) -> None:
    """The first one goes on waiting for its partner."""
    rig.forward.feed(rig.syn(1, kind))
    rig.forward.take_output()

    assert rig.forward.feed(rig.syn(3, kind)) == []
    assert sent(rig.forward.take_output()) == [("RST", 3, 1)]


def test_bytes_go_both_ways_and_hold_the_transport_back(forward: SpdyPortForward) -> None:
    """A slow port stalls its connection, as on a real node."""
    assert forward.feed(data(3, b"x" * 600_000)) == [ForwardingData(3, b"x" * 600_000)]
    assert forward.paused
    forward.acknowledge(3, 600_000)
    forward.send(3, b"y")

    assert not forward.paused
    assert sent(forward.take_output()) == [("DATA", 3, b"y", False)]


def test_either_side_may_half_close(forward: SpdyPortForward) -> None:
    """The other direction goes on."""
    forward.end(3)
    forward.end(3)
    forward.send(3, b"late")

    assert sent(forward.take_output()) == [("DATA", 3, b"", True)]
    assert forward.feed(data(3, b"x", FIN)) == [ForwardingData(3, b"x"), ForwardingEnded(3)]


def test_a_normal_end_is_fin_of_both_streams(forward: SpdyPortForward) -> None:
    """What the client still sends is dropped until it resets the data stream."""
    forward.feed(data(3, b"x" * 600_000))
    forward.close(3)
    forward.close(3)
    forward.send(3, b"late")

    assert sent(forward.take_output()) == [("DATA", 3, b"", True), ("DATA", 1, b"", True)]
    assert forward.feed(data(3, b"x" * 600_000) + rst(3)) == []
    assert not forward.paused


def test_a_port_that_cannot_be_reached_is_told_on_the_error_stream(
    forward: SpdyPortForward,
) -> None:
    """Text, then the end of both."""
    forward.close(3, "error forwarding port 80")

    assert sent(forward.take_output()) == [
        ("DATA", 1, b"error forwarding port 80", False),
        ("RST", 3, 5),
        ("DATA", 1, b"", True),
    ]


def test_a_client_that_resets_a_forwarding_has_lost_it(forward: SpdyPortForward) -> None:
    """Its error stream is ended, so that no stream is left over."""
    assert forward.feed(rst(3) + rst(1)) == [ForwardingLost(3)]
    assert sent(forward.take_output()) == [("DATA", 1, b"", True)]


def test_half_a_pair_that_the_client_takes_back_is_forgotten(rig: Rig) -> None:
    """A later partner waits for a new one."""
    rig.forward.feed(rig.syn(1, "error") + rst(1))

    assert rig.forward.feed(rig.syn(3, "data")) == [PairStarted("0")]


def test_half_a_pair_expires(rig: Rig) -> None:
    """A sentence where there is an error stream, else a reset."""
    rig.forward.feed(rig.syn(1, "error", "a") + rig.syn(3, "data", "b"))
    rig.forward.take_output()

    for request_id in ("a", "b", "c"):
        rig.forward.expire(request_id)

    assert sent(rig.forward.take_output()) == [
        ("DATA", 1, b"request a: timed out waiting for streams", False),
        ("DATA", 1, b"", True),
        ("RST", 3, 5),
    ]


def test_a_pair_that_is_complete_does_not_expire(rig: Rig) -> None:
    """A late timer does no harm."""
    rig.pair().expire("0")

    assert rig.forward.take_output() == b""


def test_what_comes_on_an_error_stream_is_dropped(rig: Rig) -> None:
    """A client has nothing to say there."""
    rig.forward.feed(rig.syn(1, "error"))

    assert rig.forward.feed(data(1, b"x" * 600_000)) == []
    assert not rig.forward.paused


def test_the_end_of_the_connection_ends_everything_once(forward: SpdyPortForward) -> None:
    """GOAWAY, then silence."""
    assert forward.feed(go_away() + data(3, b"x")) == [PeerGone()]
    assert forward.feed_eof() == []


def test_room_follows_a_peer_that_keeps_windows(forward: SpdyPortForward) -> None:
    """No peer of Kubernetes does."""
    assert forward.feed(window(3, 1)) == [RoomAgain()]
    assert forward.room(3) == 65536


def test_a_thousand_connections_one_after_the_other_leave_nothing(rig: Rig) -> None:
    """A port-forward lives for hours: streams, pairs and forwardings are forgotten."""
    for first in range(1, 4001, 4):
        rig.forward.feed(rig.syn(first, "error") + data(first, flags=FIN))
        rig.forward.feed(rig.syn(first + 2, "data") + data(first + 2, b"x"))
        rig.forward.acknowledge(first + 2, 1)
        rig.forward.close(first + 2)
        assert rig.forward.feed(rst(first + 2)) == []
        rig.forward.take_output()

    assert rig.forward.feed(rig.syn(4001, "error")) == [PairStarted("0")]
