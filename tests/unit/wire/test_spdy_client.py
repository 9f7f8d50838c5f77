"""What every session over SPDY has in common: the client is gone once, and nothing follows."""

from __future__ import annotations

import pytest

from tests.unit.wire.peer import FIN, Peer, control, data, go_away, rst, window
from vk_provider.wire.remote_command import PeerGone, RoomAgain
from vk_provider.wire.spdy import SpdyConnection
from vk_provider.wire.spdy_client import SpdyClient
from vk_provider.wire.spdy_session import DataReceived, StreamEnded, StreamOpened, StreamReset


class Names(SpdyClient[str]):
    """Tells what came by the event's name."""

    def _opened(self, event: StreamOpened) -> list[str | RoomAgain | PeerGone]:
        self._connection.accept(event.stream_id)
        return ["opened"]

    def _moved(
        self, event: DataReceived | StreamEnded | StreamReset
    ) -> list[str | RoomAgain | PeerGone]:
        return [type(event).__name__]


@pytest.fixture
def client() -> Names:
    """With one stream open."""
    opened = Names(SpdyConnection())
    assert opened.feed(Peer().syn(1)) == ["opened"]
    return opened


def test_what_comes_on_streams_is_the_sessions_own(client: Names) -> None:
    """In its order."""
    assert client.feed(data(1, b"x") + data(1, flags=FIN) + rst(1)) == [
        "DataReceived",
        "StreamEnded",
        "StreamReset",
    ]


def test_room_is_told_of(client: Names) -> None:
    """To whomever waits for it."""
    assert client.feed(window(1, 1)) == [RoomAgain()]


def test_a_client_is_gone_once(client: Names) -> None:
    """What still comes means nothing any more."""
    assert client.feed(go_away() + data(1, b"x")) == [PeerGone()]
    assert client.leave("too late") == []


def test_a_broken_peer_is_gone_with_a_reason(client: Names) -> None:
    """Which goes into a log."""
    assert client.feed(control(5, b"")) == [PeerGone("unknown control frame type 5")]
    assert client.leave() == []
