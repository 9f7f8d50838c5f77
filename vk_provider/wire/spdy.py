"""PURE, sans-I/O. The server's side of one SPDY/3.1 connection.

``feed`` takes bytes in any pieces and returns events; every act leaves bytes in one ordered output
that ``take_output`` gives to the transport. Nothing is ever sent before the peer's first frame
(client-go loses what it over-reads behind the 101): only what the peer sends causes bytes.
No memory grows with a peer's wishes: see :class:`.spdy_session.SpdyLimits`.
Fed by the transport (TCP, or the binary messages of a WebSocket tunnel); feeds
:mod:`.remote_command_spdy` and :mod:`.portforward_spdy`.
"""

from __future__ import annotations

from collections.abc import Iterator

from vk_provider.wire.spdy_flow import MAX_WINDOW, Unread
from vk_provider.wire.spdy_frames import (
    DATA_FRAME_BYTES,
    FrameReader,
    FrameType,
    ResetStatus,
    control_frame,
    data_header,
    one_word,
)
from vk_provider.wire.spdy_headers import HeaderReader
from vk_provider.wire.spdy_receive import receive
from vk_provider.wire.spdy_session import DEFAULT_LIMITS, Session, SpdyEvent, SpdyLimits
from vk_provider.wire.spdy_states import StreamInput, StreamState


class SpdyConnection:
    """One connection. Acts on a stream that the peer has reset in the meantime do nothing."""

    def __init__(self, limits: SpdyLimits = DEFAULT_LIMITS) -> None:
        self._reader = FrameReader(limits.control_frame_bytes)
        self._session = Session(
            limits,
            HeaderReader(limits.header_bytes, limits.headers),
            Unread(limits.unread),
        )

    def feed(self, chunk: bytes) -> list[SpdyEvent]:
        """What these bytes mean. Replies to the peer are in the output afterwards."""
        return list(self.events(chunk))

    def events(self, chunk: bytes) -> Iterator[SpdyEvent]:
        """The same one by one, each before the next frame is looked at: what is done about it has
        the same effect however the bytes were cut. To be iterated to its end."""
        for frame in self._reader.feed(chunk):
            receive(self._session, frame)
            yield from self._session.take_events()
        self._session.send_updates()

    def take_output(self) -> bytes:
        """The bytes to be sent now; they are given once."""
        output, self._session.output = self._session.output, []
        return b"".join(output)

    @property
    def paused(self) -> bool:
        """Whether so much is unacknowledged that the transport should not be read for now."""
        return self._session.unread.paused

    def state(self, stream_id: int) -> StreamState:
        """Where a stream is in its life."""
        return self._session.state(stream_id)

    def accept(self, stream_id: int) -> None:
        """Answer a StreamOpened with SYN_REPLY. The peer drops DATA that comes before it."""
        if self._session.act(stream_id, StreamInput.WE_ACCEPT):
            block = self._session.header_writer.write({})
            body = one_word(stream_id) + block
            self._session.output.append(control_frame(FrameType.SYN_REPLY, body))

    def reset(self, stream_id: int, status: ResetStatus = ResetStatus.CANCEL) -> None:
        """Refuse a stream, or end it in both directions at once."""
        if self._session.act(stream_id, StreamInput.WE_RESET):
            self._session.reset(stream_id, status)

    def send(self, stream_id: int, payload: bytes) -> None:
        """Send DATA, in frames of 32 KiB. To stay within :meth:`room` is the caller's business: a
        command's last words may exceed it.

        Raises:
            WireError: before :meth:`accept` or after :meth:`finish`.
        """
        if not payload or not self._session.act(stream_id, StreamInput.WE_SEND):
            return
        self._session.windows.sent(stream_id, len(payload))
        view = memoryview(payload)
        for start in range(0, len(payload), DATA_FRAME_BYTES):
            part = view[start : start + DATA_FRAME_BYTES]
            self._session.output += (data_header(stream_id, len(part)), part)

    def finish(self, stream_id: int) -> None:
        """End our direction: DATA of length 0 with FLAG_FIN. Reading goes on."""
        if self._session.act(stream_id, StreamInput.WE_END):
            self._session.output.append(data_header(stream_id, 0, fin=True))

    def acknowledge(self, stream_id: int, size: int = MAX_WINDOW) -> None:
        """Bytes of DataReceived were handed on, or dropped; all of them by default."""
        self._session.unread.consumed(stream_id, size)
        self._session.send_updates()

    def room(self, stream_id: int) -> int:
        """How many bytes may be sent on a stream now; WindowOpened tells when to ask again."""
        return self._session.windows.room(stream_id)
