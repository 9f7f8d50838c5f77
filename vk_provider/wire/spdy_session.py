"""PURE. What one SPDY connection knows: its streams, its windows, what it owes to either side.

Shared by the half that takes the peer's frames (:mod:`.spdy_receive`) and the half that obeys
the server (:mod:`.spdy`); collects the events for the one and the bytes for the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vk_provider.wire.spdy_flow import SendWindows, Unread, UnreadLimits
from vk_provider.wire.spdy_frames import (
    FrameType,
    GoAwayStatus,
    ResetStatus,
    control_frame,
    two_words,
)
from vk_provider.wire.spdy_headers import HeaderReader, HeaderWriter
from vk_provider.wire.spdy_states import StreamInput, StreamState, we_move


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """The peer opened a stream: answer with ``accept`` or ``reset``. Names are lower case."""

    stream_id: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DataReceived:
    """Payload, in order within its stream. To be acknowledged once it was handed on."""

    stream_id: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """The peer sent FLAG_FIN: it sends no more on this stream, and reads on."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class StreamReset:
    """The stream is gone in both directions, by the peer's RST_STREAM or by its fault."""

    stream_id: int
    status: int


@dataclass(frozen=True, slots=True)
class WindowOpened:
    """There may be room again on streams that had none."""


@dataclass(frozen=True, slots=True)
class GoAwayReceived:
    """The peer opens no more streams and is about to close."""

    status: int


@dataclass(frozen=True, slots=True)
class ConnectionFailed:
    """The peer broke the protocol for good: flush, then close. Nothing is read any more."""

    message: str


SpdyEvent = (
    StreamOpened | DataReceived | StreamEnded | StreamReset | WindowOpened | GoAwayReceived
    | ConnectionFailed
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SpdyLimits:
    """What a peer may ask for. kubectl's frames have 50 bytes, its sessions 5 streams (exec) or
    2 per forwarded connection."""

    control_frame_bytes: int = 64 * 1024
    header_bytes: int = 16 * 1024
    headers: int = 64
    streams: int = 2048
    stream_faults: int = 100
    """So many broken or refused streams are answered one by one; then the connection ends."""
    unread: UnreadLimits = field(default_factory=UnreadLimits)


DEFAULT_LIMITS = SpdyLimits()
"""For port-forward, where a peer opens many streams."""


@dataclass(slots=True)
class Session:
    """The mutable state of a connection."""

    limits: SpdyLimits
    header_reader: HeaderReader
    unread: Unread
    header_writer: HeaderWriter = field(default_factory=HeaderWriter)
    windows: SendWindows = field(default_factory=SendWindows)
    streams: dict[int, StreamState] = field(default_factory=dict)
    last_id: int = 0
    stream_faults: int = 0
    gone_away: bool = False
    failed: bool = False
    events: list[SpdyEvent] = field(default_factory=list)
    output: list[bytes | memoryview] = field(default_factory=list)

    def state(self, stream_id: int) -> StreamState:
        """Streams that are over are not kept: an odd id up to the last one is closed."""
        past = stream_id % 2 == 1 and stream_id <= self.last_id
        return self.streams.get(stream_id, StreamState.CLOSED if past else StreamState.IDLE)

    def move(self, stream_id: int, state: StreamState) -> None:
        """Put a stream into its next state."""
        if state is not StreamState.CLOSED:
            self.streams[stream_id] = state
        elif self.streams.pop(stream_id, None) is not None:
            self.windows.close(stream_id)
            self.unread.settle(stream_id)

    def act(self, stream_id: int, our_input: StreamInput) -> bool:
        """Do one of our own acts; False if the stream is over, so that there is nothing to do.

        Raises:
            WireError: the act is not allowed in the stream's state.
        """
        state = self.state(stream_id)
        if state is StreamState.CLOSED or self.failed:
            return False
        self.move(stream_id, we_move(state, our_input))
        return True

    def reset(self, stream_id: int, status: ResetStatus) -> None:
        """Tear a stream down and tell the peer."""
        self.move(stream_id, StreamState.CLOSED)
        self.unread.forget(stream_id)
        self.output.append(control_frame(FrameType.RST_STREAM, two_words(stream_id, status)))

    def stream_fault(self, stream_id: int, status: ResetStatus) -> None:
        """The peer did wrong on one stream; too often, and the connection ends."""
        live = stream_id in self.streams
        self.reset(stream_id, status)
        if live:
            self.events.append(StreamReset(stream_id, status))
        self.stream_faults += 1
        if self.stream_faults > self.limits.stream_faults:
            self.fail(f"more than {self.limits.stream_faults} broken or refused streams")

    def fail(self, message: str) -> None:
        """The peer did wrong beyond repair: say so once, and listen no more."""
        if self.failed:
            return
        self.failed = True
        self.go_away(GoAwayStatus.PROTOCOL_ERROR)
        self.streams.clear()
        self.events.append(ConnectionFailed(message))

    def take_events(self) -> list[SpdyEvent]:
        """The events since the last time."""
        events, self.events = self.events, []
        return events

    def go_away(self, status: GoAwayStatus) -> None:
        """Announce the end of the connection."""
        self.output.append(control_frame(FrameType.GOAWAY, two_words(self.last_id, status)))

    def send_updates(self) -> None:
        """Give back the windows of what was consumed, to a peer that keeps windows."""
        if self.windows.kept and not self.failed:
            for stream_id, delta in self.unread.take_updates():
                body = two_words(stream_id, delta)
                self.output.append(control_frame(FrameType.WINDOW_UPDATE, body))
