"""A client of the kubelet's port-forward protocol: two SPDY streams, one connection to a port.

Sans-I/O: bytes of the far side go in, bytes for it come out. The streams go through a WebSocket
(``SPDY/3.1+portforward.k8s.io``), since HTTP proxies let those pass and SPDY can close one
direction alone, which the channels of Kubernetes' older WebSocket protocol can't.
Pure. Fed by ``ports``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vk_provider.streams import CHUNK_BYTES
from vk_provider.wire.spdy_frames import (
    FLAG_FIN,
    BadFrame,
    DataPiece,
    Frame,
    FrameReader,
    FrameType,
    GoAway,
    GoAwayStatus,
    Ping,
    RstStream,
    SynReply,
    control_frame,
    data_header,
    one_word,
    two_words,
)
from vk_provider.wire.spdy_headers import HeaderWriter

PROTOCOL = "SPDY/3.1+portforward.k8s.io"
ERROR, DATA = 1, 3
"""Our streams: clients open odd ones. The error stream comes first."""

_MAX_CONTROL = 64 * 1024
_MAX_WORDS = 4096


@dataclass(slots=True)
class Tunnel:
    """One connection to one port. ``received`` holds what the far side sent, ``ended`` that it
    sends no more, and ``fault`` why there is no connection."""

    port: int
    accepted: int = 0
    ended: bool = False
    fault: str = ""
    received: bytearray = field(default_factory=bytearray)
    _silent: bool = True
    _explained: bool = False
    _reader: FrameReader = field(default_factory=lambda: FrameReader(_MAX_CONTROL))
    _words: bytearray = field(default_factory=bytearray)

    @property
    def is_open(self) -> bool:
        """Whether the far side has taken both streams."""
        return self.accepted >= 2

    @property
    def owes_reason(self) -> bool:
        """Whether it ended without a byte, and the stream that would say why has not yet.

        containerd closes the data of a port that nobody listens on first.
        """
        return self.ended and self._silent and not self._explained and not self.fault

    def begin(self) -> bytes:
        """Open both streams; we write nothing on the one for errors."""
        headers = HeaderWriter()
        common = {"port": str(self.port), "requestid": "0"}
        error = _syn(ERROR, headers.write({"streamtype": "error", **common}), FLAG_FIN)
        return error + _syn(DATA, headers.write({"streamtype": "data", **common}))

    def feed(self, chunk: bytes) -> bytes:
        """Take bytes of the far side; what is to be answered at once."""
        return b"".join(map(self._take, self._reader.feed(chunk)))

    def lost(self, why: str) -> None:
        """The way there is gone."""
        self._explained = True
        if not self.ended:
            self.ended = True
            self.fault = self.fault or why

    def data(self, chunk: bytes) -> list[bytes]:
        """The frames that carry a chunk."""
        starts = range(0, len(chunk), CHUNK_BYTES)
        parts = [chunk[begin : begin + CHUNK_BYTES] for begin in starts]
        return [data_header(DATA, len(part)) + part for part in parts]

    def end(self) -> bytes:
        """Close our direction."""
        return data_header(DATA, 0, fin=True)

    def bye(self) -> bytes:
        """Give the connection up."""
        return control_frame(FrameType.GOAWAY, two_words(0, GoAwayStatus.OK))

    def _take(self, frame: Frame) -> bytes:
        match frame:
            case SynReply():
                self.accepted += 1
            case DataPiece(stream_id=stream, payload=payload, fin=fin):
                self._data(stream, payload, fin)
            case Ping(ping_id=number):
                return control_frame(FrameType.PING, one_word(number))
            case RstStream(stream_id=stream) if stream == ERROR:
                self._explained = True
            case RstStream(stream_id=stream) if stream == DATA:
                self.lost("the far side reset the connection")
            case GoAway():
                self.lost("the far side closed the connection")
            case BadFrame(message=message):
                self.lost(f"the far side broke the protocol: {message}")
        return b""

    def _data(self, stream: int, payload: bytes, fin: bool) -> None:
        if stream == DATA:
            self.received += payload
            self.ended = self.ended or fin
            self._silent = self._silent and not payload
            return
        self._explained = self._explained or fin
        room = max(0, _MAX_WORDS - len(self._words))
        self._words += payload[:room]
        if self._words:
            self.fault = self._words.decode(errors="replace").strip()


def _syn(stream_id: int, block: bytes, flags: int = 0) -> bytes:
    return control_frame(FrameType.SYN_STREAM, two_words(stream_id, 0) + b"\0\0" + block, flags)
