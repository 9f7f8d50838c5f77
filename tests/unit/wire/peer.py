"""A SPDY peer for the tests: writes frames by the draft's pictures, reads what a server sent."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vk_provider.wire.spdy_headers import DICTIONARY

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS = 1, 2, 3, 4
PING, GOAWAY, HEADERS, WINDOW_UPDATE = 6, 7, 8, 9
FIN, UNIDIRECTIONAL = 1, 2


def cut(raw: bytes, places: Sequence[int]) -> list[bytes]:
    """The bytes, cut at these places."""
    edges = [0, *sorted(place % (len(raw) + 1) for place in places), len(raw)]
    return [raw[start:end] for start, end in itertools.pairwise(edges)]


def control(kind: int, body: bytes, flags: int = 0, version: int = 3) -> bytes:
    """A control frame."""
    return struct.pack("!HHI", 0x8000 | version, kind, flags << 24 | len(body)) + body


def data(stream_id: int, payload: bytes = b"", flags: int = 0) -> bytes:
    """A DATA frame."""
    return struct.pack("!II", stream_id, flags << 24 | len(payload)) + payload


def words(*values: int) -> bytes:
    """32-bit numbers."""
    return struct.pack(f"!{len(values)}I", *values)


def block(headers: Mapping[str, str]) -> bytes:
    """A header block before compression."""
    texts = [text.encode("latin-1") for pair in headers.items() for text in pair]
    return words(len(headers)) + b"".join(words(len(text)) + text for text in texts)


@dataclass
class Peer:
    """A client; its header blocks share one zlib stream, as on the wire."""

    deflate: zlib._Compress = field(default_factory=lambda: zlib.compressobj(zdict=DICTIONARY))

    def pack(self, plain: bytes) -> bytes:
        """Compress a block, whatever is in it."""
        return self.deflate.compress(plain) + self.deflate.flush(zlib.Z_SYNC_FLUSH)

    def syn(self, stream_id: int, flags: int = 0, /, **headers: str) -> bytes:
        """Open a stream."""
        body = words(stream_id, 0) + b"\0\0" + self.pack(block(headers))
        return control(SYN_STREAM, body, flags)

    def headers(self, stream_id: int, flags: int = 0) -> bytes:
        """More headers, none."""
        return control(HEADERS, words(stream_id) + self.pack(block({})), flags)


def rst(stream_id: int, status: int = 5) -> bytes:
    """Tear a stream down."""
    return control(RST_STREAM, words(stream_id, status))


def go_away() -> bytes:
    """Announce the end."""
    return control(GOAWAY, words(0, 0))


def window(stream_id: int, delta: int) -> bytes:
    """Widen a window."""
    return control(WINDOW_UPDATE, words(stream_id, delta))


def settings(*entries: tuple[int, int]) -> bytes:
    """Settings."""
    return control(SETTINGS, words(len(entries)) + b"".join(words(*entry) for entry in entries))


def sent(output: bytes) -> list[tuple[Any, ...]]:
    """What a server sent, without header blocks: ``("DATA", 1, b"x", fin)``, ``("RST", 1, 5)``."""
    names = {
        SYN_REPLY: "REPLY",
        RST_STREAM: "RST",
        PING: "PING",
        GOAWAY: "GOAWAY",
        WINDOW_UPDATE: "WINDOW",
    }
    frames: list[tuple[Any, ...]] = []
    while output:
        first, second = struct.unpack_from("!II", output)
        body, output = output[8 : 8 + (second & 0xFFFFFF)], output[8 + (second & 0xFFFFFF) :]
        if not first >> 31:
            frames.append(("DATA", first, body, bool(second >> 24)))
            continue
        name = names[first & 0xFFFF]
        numbers = 1 if name == "REPLY" else len(body) // 4
        frames.append((name, *struct.unpack_from(f"!{numbers}I", body)))
    return frames
