"""The client's side of a port-forward, byte by byte."""

from __future__ import annotations

import pytest
from vk_provider_kubernetes.tunnel import DATA, ERROR, Tunnel

from vk_provider.streams import CHUNK_BYTES
from vk_provider.wire.spdy_frames import (
    BadFrame,
    DataPiece,
    Frame,
    FrameReader,
    FrameType,
    GoAway,
    Ping,
    SynStream,
    control_frame,
    data_header,
    one_word,
    two_words,
)
from vk_provider.wire.spdy_headers import HeaderReader


def frames(raw: bytes) -> list[Frame]:
    """What a peer would read."""
    return FrameReader(1 << 16).feed(raw)


def reply(stream_id: int) -> bytes:
    """A peer takes a stream."""
    return control_frame(FrameType.SYN_REPLY, one_word(stream_id))


def data(stream_id: int, payload: bytes, fin: bool = False) -> bytes:
    """A peer sends."""
    return data_header(stream_id, len(payload), fin) + payload


def test_both_streams_are_opened_with_their_port() -> None:
    """The one for errors first, and half closed: we write nothing there."""
    error, stream = frames(Tunnel(8080).begin())

    assert isinstance(error, SynStream)
    assert isinstance(stream, SynStream)
    assert (error.stream_id, error.fin) == (ERROR, True)
    assert (stream.stream_id, stream.fin) == (DATA, False)
    reader = HeaderReader(1 << 14, 16)
    common = {"port": "8080", "requestid": "0"}
    assert reader.read(error.block) == {"streamtype": "error", **common}
    assert reader.read(stream.block) == {"streamtype": "data", **common}


def test_it_is_open_once_both_are_taken() -> None:
    """Bytes may come cut anywhere."""
    tunnel = Tunnel(80)

    for byte in reply(ERROR) + reply(DATA):
        assert not tunnel.is_open
        tunnel.feed(bytes([byte]))

    assert tunnel.is_open


def test_data_is_kept_until_it_is_read_and_its_end_is_told() -> None:
    """In order."""
    tunnel = Tunnel(80)

    tunnel.feed(data(DATA, b"one ") + data(DATA, b"two", fin=True))

    assert (bytes(tunnel.received), tunnel.ended, tunnel.fault) == (b"one two", True, "")


def test_words_on_the_stream_for_errors_are_why_there_is_no_connection() -> None:
    """As far as they are of a sensible length."""
    tunnel = Tunnel(80)

    tunnel.feed(data(ERROR, b"connection ") + data(ERROR, b"refused", fin=True))
    assert (tunnel.fault, tunnel.ended) == ("connection refused", False)

    tunnel.feed(data(ERROR, b"x" * 9000))
    assert len(tunnel.fault) == 4096


def test_an_empty_end_of_errors_is_no_error() -> None:
    """Nothing was wrong."""
    tunnel = Tunnel(80)

    tunnel.feed(data(ERROR, b"", fin=True))

    assert (tunnel.fault, tunnel.ended) == ("", False)


def test_pings_are_answered() -> None:
    """With their own number."""
    ping = control_frame(FrameType.PING, one_word(2))

    (answer,) = frames(Tunnel(80).feed(ping))

    assert answer == Ping(2)


def test_a_reset_or_a_farewell_ends_it() -> None:
    """The first reason stands."""
    tunnel = Tunnel(80)

    tunnel.feed(control_frame(FrameType.RST_STREAM, two_words(DATA, 1)))
    tunnel.feed(control_frame(FrameType.GOAWAY, two_words(0, 0)))

    assert tunnel.ended
    assert "reset" in tunnel.fault


def test_a_reset_of_the_stream_for_errors_is_no_end() -> None:
    """Some kubelets close it so."""
    tunnel = Tunnel(80)

    tunnel.feed(control_frame(FrameType.RST_STREAM, two_words(ERROR, 5)))

    assert not tunnel.ended


def test_a_broken_protocol_ends_it() -> None:
    """With what was wrong."""
    tunnel = Tunnel(80)

    tunnel.feed(b"\x80\x09" + bytes(6))

    assert isinstance(frames(b"\x80\x09" + bytes(6))[0], BadFrame)
    assert "protocol" in tunnel.fault


def test_what_is_sent_goes_in_pieces() -> None:
    """None larger than anybody hands on."""
    sent = bytes(CHUNK_BYTES + 1)

    first, second = Tunnel(80).data(sent)

    assert len(first) == CHUNK_BYTES + 8
    assert frames(second) == [DataPiece(DATA, b"\0", True, False)]


def test_our_end_is_told() -> None:
    """One direction, or all of it."""
    tunnel = Tunnel(80)

    (end,) = frames(tunnel.end())
    (bye,) = frames(tunnel.bye())

    assert isinstance(end, DataPiece)
    assert end.fin
    assert isinstance(bye, GoAway)


def test_after_its_end_nothing_is_a_fault() -> None:
    """A farewell follows every end."""
    tunnel = Tunnel(80)
    tunnel.feed(data(DATA, b"", fin=True))

    tunnel.lost("closed")

    assert tunnel.fault == ""


def test_an_end_without_a_byte_owes_a_reason() -> None:
    """containerd closes the data of a port that nobody listens on before it says so."""
    tunnel = Tunnel(80)

    tunnel.feed(data(DATA, b"", fin=True))
    assert tunnel.owes_reason

    tunnel.feed(data(ERROR, b"refused", fin=True))
    assert not tunnel.owes_reason
    assert tunnel.fault == "refused"


@pytest.mark.parametrize(
    "last",
    [
        data(ERROR, b"", fin=True),
        control_frame(FrameType.RST_STREAM, two_words(ERROR, 5)),
        control_frame(FrameType.GOAWAY, two_words(0, 0)),
    ],
)
def test_no_reason_is_owed_once_nobody_can_give_one(last: bytes) -> None:
    """The stream for errors has ended, or everything has."""
    tunnel = Tunnel(80)

    tunnel.feed(data(DATA, b"", fin=True) + last)

    assert (tunnel.owes_reason, tunnel.ended, tunnel.fault) == (False, True, "")


def test_an_end_after_data_owes_nothing() -> None:
    """Somebody listened."""
    tunnel = Tunnel(80)

    tunnel.feed(data(DATA, b"hello") + data(DATA, b"", fin=True))

    assert not tunnel.owes_reason
