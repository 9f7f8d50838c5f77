"""Frames: any pieces of the bytes give the same frames, and nonsense is told at once."""

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire import recorded
from tests.unit.wire.peer import control, cut, data, settings, words
from vk_provider.wire.spdy_frames import (
    BadFrame,
    DataPiece,
    Frame,
    FrameReader,
    FrameType,
    GoAway,
    Headers,
    Ping,
    RstStream,
    Settings,
    SynReply,
    SynStream,
    WindowUpdate,
    control_frame,
    data_header,
    one_word,
    two_words,
)

LIMIT = 1024

WELL_FORMED: list[tuple[bytes, list[Frame]]] = [
    (control(1, words(1, 0) + b"\xe0\0zz", 1), [SynStream(1, True, False, b"zz")]),
    (control(1, words(1, 0) + b"\0\0", 2), [SynStream(1, False, True, b"")]),
    (control(2, words(3) + b"zz"), [SynReply(3, b"zz")]),
    (control(3, words(1, 5)), [RstStream(1, 5)]),
    (settings((0x0100_0007, 9), (4, 2)), [Settings(((7, 9), (4, 2)))]),
    (control(6, words(1)), [Ping(1)]),
    (control(7, words(5, 1)), [GoAway(5, 1)]),
    (control(8, words(1) + b"zz", 1), [Headers(1, True, b"zz")]),
    (control(9, words(0x8000_0001, 0x8000_0002)), [WindowUpdate(1, 2)]),
    (data(1, b"abc"), [DataPiece(1, b"abc")]),
    (data(1, b"abc", 1), [DataPiece(1, b"abc", fin=True)]),
    (data(1, b"", 1), [DataPiece(1, b"", fin=True)]),
]

MALFORMED: dict[str, bytes] = {
    "version 2": control(6, words(1), version=2),
    "unknown control frame type 5": control(5, b""),
    "unknown control frame type 10": control(10, b""),
    "SYN_STREAM of 9 bytes; it has at least 10": control(1, words(1, 0) + b"\0"),
    "SYN_REPLY of 3 bytes; it has at least 4": control(2, b"\0\0\0"),
    "RST_STREAM of 9 bytes; it has exactly 8": control(3, words(1, 5) + b"\0"),
    "PING of 8 bytes; it has exactly 4": control(6, words(1, 1)),
    "GOAWAY of 4 bytes; it has exactly 8": control(7, words(1)),
    "HEADERS of 0 bytes; it has at least 4": control(8, b""),
    "WINDOW_UPDATE of 0 bytes; it has exactly 8": control(9, b""),
    "HEADERS of 1025 bytes; at most 1024 are accepted": control(8, b"x" * (LIMIT + 1)),
    "SETTINGS says 2 entries and has 8 bytes": control(4, words(2, 7, 9)),
    "RST_STREAM with status 0": control(3, words(1, 0)),
    "PING with id 0 and flags 0": control(6, words(0)),
    "PING with id 1 and flags 1": control(6, words(1), 1),
    "GOAWAY with flags 1": control(7, words(1, 0), 1),
    "WINDOW_UPDATE with flags 4": control(9, words(1, 1), 4),
    "DATA on stream 0": data(0, b"x"),
    "control frame for stream 0": control(1, words(0, 0) + b"\0\0"),
}


def joined(frames: Sequence[Frame]) -> list[Frame]:
    """The frames with the pieces of each DATA frame put together again."""
    whole: list[Frame] = []
    for frame in frames:
        last = whole[-1] if whole else None
        if isinstance(frame, DataPiece) and not frame.first and isinstance(last, DataPiece):
            whole[-1] = DataPiece(last.stream_id, last.payload + frame.payload, True, frame.fin)
        else:
            whole.append(frame)
    return whole


def fed(chunks: Sequence[bytes]) -> list[Frame]:
    reader = FrameReader(LIMIT)
    return joined([frame for chunk in chunks for frame in reader.feed(chunk)])


@pytest.mark.parametrize(("raw", "frames"), WELL_FORMED)
def test_each_frame_is_read_as_the_draft_draws_it(raw: bytes, frames: list[Frame]) -> None:
    """One frame in, one frame out."""
    assert fed([raw]) == frames


@pytest.mark.parametrize(("message", "raw"), MALFORMED.items())
def test_a_malformed_frame_ends_the_reading_and_says_why(message: str, raw: bytes) -> None:
    """What follows is not read: there is no telling where a frame would begin."""
    good = control(6, words(7))

    frames = fed([good + raw + good, good])

    assert frames[0] == Ping(7)
    assert isinstance(frames[1], BadFrame)
    assert message in frames[1].message
    assert len(frames) == 2


def test_a_frame_that_is_too_long_is_refused_by_its_header_alone() -> None:
    """Nothing is collected for a body that will not be accepted."""
    header = struct.pack("!HHI", 0x8003, 8, 0xFF_FFFF)

    assert isinstance(fed([header])[0], BadFrame)


def test_the_payload_of_a_long_frame_is_handed_on_as_it_comes() -> None:
    """A DATA frame of 16 MiB needs no 16 MiB."""
    reader = FrameReader(LIMIT)
    header = struct.pack("!II", 1, 1 << 24 | 0xFF_FFFF)

    first = reader.feed(header + b"ab")
    second = reader.feed(b"c")

    assert first == [DataPiece(1, b"ab", first=True)]
    assert second == [DataPiece(1, b"c", first=False)]
    assert reader.feed(b"") == []


@given(
    st.lists(st.sampled_from([*(raw for raw, _ in WELL_FORMED), *MALFORMED.values()]), max_size=6),
    st.lists(st.integers(0, 4096)),
)
def test_bytes_cut_anywhere_give_the_same_frames(raws: list[bytes], places: list[int]) -> None:
    """TCP keeps no borders."""
    raw = b"".join(raws)

    assert fed(cut(raw, places)) == fed([raw])


@given(st.binary(max_size=200), st.lists(st.integers(0, 200)))
def test_nonsense_cut_anywhere_gives_the_same_frames(raw: bytes, places: list[int]) -> None:
    """Also where it is no SPDY."""
    assert fed(cut(raw, places)) == fed([raw])


@pytest.mark.parametrize("raw", [recorded.EXEC, recorded.CLOSE, recorded.TTY, recorded.FORWARD])
def test_recorded_bytes_one_by_one_are_the_same_frames(raw: bytes) -> None:
    """Go writes frames field by field."""
    one_by_one = fed([bytes([byte]) for byte in raw])

    assert one_by_one == fed([raw])
    assert not any(isinstance(frame, BadFrame) for frame in one_by_one)


def test_what_is_written_reads_back() -> None:
    """Both halves agree."""
    raw = b"".join(
        [
            control_frame(FrameType.PING, one_word(3)),
            control_frame(FrameType.RST_STREAM, two_words(1, 5)),
            data_header(1, 2, fin=True) + b"ab",
        ]
    )

    assert fed([raw]) == [Ping(3), RstStream(1, 5), DataPiece(1, b"ab", fin=True)]
