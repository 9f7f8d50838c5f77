"""PURE, sans-I/O. SPDY/3.1 frames: bytes in any pieces become frames, frames become bytes.

Every frame has an 8-byte header in network byte order. Control: one bit 1, 15 bits version (3),
16 bits type, 8 bits flags, 24 bits length. Data: one bit 0, 31 bits stream id, 8 bits flags, 24
bits length (SPDY/3 draft, 2.2). Header blocks stay compressed here: :mod:`.spdy_headers`.
Fed by the transport through :mod:`.spdy`; feeds :mod:`.spdy_receive`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

from vk_provider.faults import WireError

VERSION = 3
FLAG_FIN = 0x01
FLAG_UNIDIRECTIONAL = 0x02
SETTING_INITIAL_WINDOW_SIZE = 7
"""SPDY/3 draft, 2.6.4: the id of the one setting that matters to us."""
MAX_STREAM_ID = 0x7FFF_FFFF
DATA_FRAME_BYTES = 32 * 1024
"""We never send a longer DATA frame, so that streams of one connection take turns."""

_HEADER = Struct("!II")
_WORD = Struct("!I")
_TWO_WORDS = Struct("!II")
_SYN_STREAM = Struct("!IIBB")
_CONTROL = 0x8000_0000


class FrameType(IntEnum):
    """The control frames of SPDY/3.1 (draft, 2.6); 5 (NOOP) and 10 (CREDENTIAL) are gone."""

    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    HEADERS = 8
    WINDOW_UPDATE = 9


class ResetStatus(IntEnum):
    """Why a stream is torn down (draft, 2.6.3)."""

    PROTOCOL_ERROR = 1
    INVALID_STREAM = 2
    REFUSED_STREAM = 3
    UNSUPPORTED_VERSION = 4
    CANCEL = 5
    INTERNAL_ERROR = 6
    FLOW_CONTROL_ERROR = 7
    STREAM_IN_USE = 8
    STREAM_ALREADY_CLOSED = 9
    INVALID_CREDENTIALS = 10
    FRAME_TOO_LARGE = 11


class GoAwayStatus(IntEnum):
    """Why a connection ends (draft, 2.6.6)."""

    OK = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2


@dataclass(frozen=True, slots=True)
class SynStream:
    """Opens a stream. ``block`` is its compressed header block."""

    stream_id: int
    fin: bool
    unidirectional: bool
    block: bytes


@dataclass(frozen=True, slots=True)
class SynReply:
    """Accepts a stream."""

    stream_id: int
    block: bytes


@dataclass(frozen=True, slots=True)
class Headers:
    """More headers for a stream."""

    stream_id: int
    fin: bool
    block: bytes


@dataclass(frozen=True, slots=True)
class RstStream:
    """Tears a stream down in both directions. ``status`` may be one we don't know."""

    stream_id: int
    status: int


@dataclass(frozen=True, slots=True)
class Settings:
    """``(id, value)`` pairs in the order of the frame."""

    entries: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Ping:
    """To be echoed unchanged when the id is the peer's."""

    ping_id: int


@dataclass(frozen=True, slots=True)
class GoAway:
    """The peer opens no more streams."""

    last_stream_id: int
    status: int


@dataclass(frozen=True, slots=True)
class WindowUpdate:
    """The peer has room for ``delta`` more bytes; stream 0 is the whole connection (3.1)."""

    stream_id: int
    delta: int


@dataclass(frozen=True, slots=True)
class DataPiece:
    """Payload of a DATA frame as far as it has arrived: a frame of 16 MiB is never collected.

    ``first`` marks the frame's first piece; ``fin`` is only set on the last piece of a FIN frame.
    """

    stream_id: int
    payload: bytes
    first: bool = True
    fin: bool = False


@dataclass(frozen=True, slots=True)
class BadFrame:
    """The bytes are no SPDY/3.1. Always the last frame that a reader gives."""

    message: str


Frame = (
    SynStream | SynReply | Headers | RstStream | Settings | Ping | GoAway | WindowUpdate
    | DataPiece | BadFrame
)  # fmt: skip


class FrameReader:
    """Cuts a byte stream into frames; remembers what is incomplete, at most one control frame."""

    def __init__(self, max_control_frame_bytes: int) -> None:
        self._max_control_frame_bytes = max_control_frame_bytes
        self._pending = bytearray()
        self._data_left: int | None = None
        self._data_stream = 0
        self._data_fin = False
        self._data_first = True
        self._bad = False

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames, and pieces of DATA frames, that this chunk completes. After a BadFrame
        everything is ignored: without a frame's length there is no next frame."""
        if self._bad:
            return []
        self._pending += chunk
        frames: list[Frame] = []
        try:
            frames.extend(self._frames())
        except WireError as error:
            self._bad = True
            self._pending.clear()
            frames.append(BadFrame(str(error)))
        return frames

    def _frames(self) -> Iterator[Frame]:
        while True:
            if self._data_left is not None:
                piece = self._take_piece(self._data_left)
                if piece is None:
                    return
                yield piece
            if len(self._pending) < _HEADER.size:
                return
            word, length_word = _HEADER.unpack_from(self._pending)
            flags, length = length_word >> 24, length_word & 0xFF_FFFF
            if word & _CONTROL:
                frame = self._take_control(word, flags, length)
                if frame is None:
                    return
                yield frame
            else:
                self._start_data(word, flags, length)

    def _start_data(self, stream_id: int, flags: int, length: int) -> None:
        if stream_id == 0:
            raise WireError("DATA on stream 0, which does not exist")
        del self._pending[: _HEADER.size]
        self._data_left, self._data_stream = length, stream_id
        self._data_fin, self._data_first = bool(flags & FLAG_FIN), True

    def _take_piece(self, left: int) -> DataPiece | None:
        with memoryview(self._pending) as view:
            payload = bytes(view[:left])
        if left and not payload:
            return None
        del self._pending[: len(payload)]
        complete = len(payload) == left
        self._data_left = None if complete else left - len(payload)
        first, self._data_first = self._data_first, False
        return DataPiece(self._data_stream, payload, first, complete and self._data_fin)

    def _take_control(self, word: int, flags: int, length: int) -> Frame | None:
        # Checked before the body arrives: a peer that is wrong gets no memory for it.
        parse = _parser(word, length, self._max_control_frame_bytes)
        end = _HEADER.size + length
        if len(self._pending) < end:
            return None
        body = bytes(self._pending[_HEADER.size : end])
        del self._pending[:end]
        return parse(flags, body)


def _parser(word: int, length: int, limit: int) -> Callable[[int, bytes], Frame]:
    version, kind = word >> 16 & 0x7FFF, word & 0xFFFF
    if version != VERSION:
        raise WireError(f"control frame of SPDY version {version}; this is version {VERSION}")
    if kind not in _PARSERS:
        raise WireError(f"unknown control frame type {kind}")
    name = FrameType(kind).name
    minimum, exact, parse = _PARSERS[kind]
    if length > limit:
        raise WireError(f"{name} of {length} bytes; at most {limit} are accepted")
    if length < minimum or (exact and length != minimum):
        bound = "exactly" if exact else "at least"
        raise WireError(f"{name} of {length} bytes; it has {bound} {minimum}")
    return parse


def _syn_stream(flags: int, body: bytes) -> Frame:
    stream_id, _associated, _priority, _slot = _SYN_STREAM.unpack_from(body)
    fin, unidirectional = bool(flags & FLAG_FIN), bool(flags & FLAG_UNIDIRECTIONAL)
    return SynStream(_stream(stream_id), fin, unidirectional, body[_SYN_STREAM.size :])


def _syn_reply(_flags: int, body: bytes) -> Frame:
    return SynReply(_stream(_WORD.unpack_from(body)[0]), body[_WORD.size :])


def _headers(flags: int, body: bytes) -> Frame:
    stream_id = _stream(_WORD.unpack_from(body)[0])
    return Headers(stream_id, bool(flags & FLAG_FIN), body[_WORD.size :])


def _rst_stream(_flags: int, body: bytes) -> Frame:
    stream_id, status = _TWO_WORDS.unpack(body)
    if status == 0:
        raise WireError("RST_STREAM with status 0, which means nothing")
    return RstStream(_stream(stream_id), status)


def _settings(_flags: int, body: bytes) -> Frame:
    count = _WORD.unpack_from(body)[0]
    if len(body) != _WORD.size + count * _TWO_WORDS.size:
        raise WireError(f"SETTINGS says {count} entries and has {len(body) - _WORD.size} bytes")
    entries = _TWO_WORDS.iter_unpack(body[_WORD.size :])
    return Settings(tuple((key & 0xFF_FFFF, value) for key, value in entries))


def _ping(flags: int, body: bytes) -> Frame:
    ping_id = _WORD.unpack(body)[0]
    if ping_id == 0 or flags:
        raise WireError(f"PING with id {ping_id} and flags {flags}; an id and no flag are needed")
    return Ping(ping_id)


def _go_away(flags: int, body: bytes) -> Frame:
    if flags:
        raise WireError(f"GOAWAY with flags {flags}; it has none")
    last, status = _TWO_WORDS.unpack(body)
    return GoAway(last & MAX_STREAM_ID, status)


def _window_update(flags: int, body: bytes) -> Frame:
    if flags:
        raise WireError(f"WINDOW_UPDATE with flags {flags}; it has none")
    stream_id, delta = _TWO_WORDS.unpack(body)
    return WindowUpdate(stream_id & MAX_STREAM_ID, delta & MAX_STREAM_ID)


def _stream(word: int) -> int:
    stream_id = word & MAX_STREAM_ID
    if stream_id == 0:
        raise WireError("control frame for stream 0, which does not exist")
    return stream_id


# Per type: the least length, whether that is the only one, and how the body is read.
_PARSERS: dict[int, tuple[int, bool, Callable[[int, bytes], Frame]]] = {
    FrameType.SYN_STREAM: (10, False, _syn_stream),
    FrameType.SYN_REPLY: (4, False, _syn_reply),
    FrameType.RST_STREAM: (8, True, _rst_stream),
    FrameType.SETTINGS: (4, False, _settings),
    FrameType.PING: (4, True, _ping),
    FrameType.GOAWAY: (8, True, _go_away),
    FrameType.HEADERS: (4, False, _headers),
    FrameType.WINDOW_UPDATE: (8, True, _window_update),
}


def control_frame(kind: FrameType, body: bytes, flags: int = 0) -> bytes:
    """A control frame around a body that is already in wire form."""
    word = _CONTROL | VERSION << 16 | kind
    return _HEADER.pack(word, flags << 24 | len(body)) + body


def data_header(stream_id: int, length: int, fin: bool = False) -> bytes:
    """The 8 bytes before the payload of a DATA frame."""
    return _HEADER.pack(stream_id, (FLAG_FIN if fin else 0) << 24 | length)


def two_words(first: int, second: int) -> bytes:
    """The body of RST_STREAM, GOAWAY and WINDOW_UPDATE."""
    return _TWO_WORDS.pack(first, second)


def one_word(value: int) -> bytes:
    """The body of PING, and the first word of SYN_REPLY."""
    return _WORD.pack(value)
