"""PURE, sans-I/O. Exec and attach over WebSocket: each message begins with its channel.

Channels 0 stdin, 1 stdout, 2 stderr, 3 error, 4 resize. Raw protocols: binary messages, the first
byte is the channel. base64 protocols: text messages, the first character is the channel's digit,
the rest is base64. v5 adds the message ``[255, channel]``: the client closes that channel; before
it input has no end. (``k8s.io/streaming/pkg/httpstream/wsstream``.)
Fed by ``server`` (messages of aiohttp's WebSocket); feeds the exec core.
"""

from __future__ import annotations

import binascii
from dataclasses import dataclass
from typing import Final

from vk_provider.wire.outcome import Outcome, outcome_bytes
from vk_provider.wire.remote_command import (
    Output,
    PeerGone,
    Ready,
    RemoteEvent,
    StdinClosed,
    StdinData,
    StreamOptions,
)
from vk_provider.wire.resize import ResizeReader
from vk_provider.wire.spdy_flow import MAX_WINDOW

Message = bytes | str
"""A WebSocket message: bytes are a binary one, a str is a text one."""

MESSAGE_BYTES: Final = 32 * 1024
"""We never put more payload into one message."""
CLOSE_NORMAL: Final = 1000
CLOSE_PROTOCOL_ERROR: Final = 1002
"""Close codes (RFC 6455, 7.4.1). A client takes anything but 1000 for an error."""

_STDIN, _ERROR, _RESIZE, _CHANNELS, _CLOSE = 0, 3, 4, 5, 255
_PAUSE_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class ChannelCodec:
    """How one subprotocol writes a channel and its payload into a message."""

    base64: bool = False

    @classmethod
    def of(cls, protocol: str) -> ChannelCodec:
        """The codec of ``channel.k8s.io``, ``base64.channel.k8s.io``, and their ``vN.`` forms."""
        return cls("base64." in protocol)

    def encode(self, channel: int, payload: bytes) -> list[Message]:
        """The messages that carry a payload, in pieces; one for an empty payload."""
        starts = range(0, max(1, len(payload)), MESSAGE_BYTES)
        return [self._one(channel, payload[at : at + MESSAGE_BYTES]) for at in starts]

    def decode(self, message: Message) -> tuple[int, bytes] | None:
        """Channel and payload; None for what a kubelet ignores: nothing in it, or bad base64.
        Text and binary messages are read alike, as Go reads them."""
        raw = message.encode() if isinstance(message, str) else message
        if not raw:
            return None
        if not self.base64:
            return raw[0], raw[1:]
        try:
            encoded = raw[1:].translate(None, b"\r\n")
            return (raw[0] - ord("0")) % 256, binascii.a2b_base64(encoded, strict_mode=True)
        except binascii.Error:
            return None

    def _one(self, channel: int, payload: bytes) -> Message:
        if self.base64:
            return chr(ord("0") + channel) + binascii.b2a_base64(payload, newline=False).decode()
        return bytes([channel]) + payload


class WebSocketRemoteCommand:
    """A :class:`.remote_command.RemoteCommand` over the messages of a WebSocket.

    Once it has finished, or after PeerGone, send what is left and close with ``close_code``.
    The library reads whole messages, so its largest one comes on top of what ``paused`` bounds.
    """

    def __init__(self, protocol: str, options: StreamOptions) -> None:
        self._codec = ChannelCodec.of(protocol)
        self._has_close = protocol.startswith("v5.")
        self._as_status = protocol.startswith(("v4.", "v5."))
        self._options = options
        self._resizes = ResizeReader()
        self._output: list[Message] = []
        self._unread = 0
        self._stdin_open = options.stdin
        self._finished = False
        self._gone = False
        self.close_code = CLOSE_NORMAL

    @property
    def paused(self) -> bool:
        """See :class:`.remote_command.RemoteCommand`."""
        return self._unread >= _PAUSE_BYTES

    def begin(self) -> list[RemoteEvent]:
        """Ready at once. An empty message on the lowest channel that we write tells the client."""
        asked = ((self._options.stdout, 1), (self._options.stderr, 2), (True, _ERROR))
        self._output += self._codec.encode(next(c for wanted, c in asked if wanted), b"")
        return [Ready()]

    def feed(self, message: Message) -> list[RemoteEvent]:
        """What one message of the client means. Nothing after PeerGone."""
        decoded = None if self._gone else self._codec.decode(message)
        if decoded is None:
            return []
        channel, payload = decoded
        if channel == _CLOSE and self._has_close:
            return self._close(payload)
        if self._finished:
            return []
        if channel == _RESIZE:
            return [*self._resizes.feed(payload)]
        if channel == _STDIN and payload and self._stdin_open:
            self._unread += len(payload)
            starts = range(0, len(payload), MESSAGE_BYTES)
            return [StdinData(payload[at : at + MESSAGE_BYTES]) for at in starts]
        return []

    def feed_eof(self) -> list[RemoteEvent]:
        """The client closed the WebSocket, or its connection broke."""
        return self._leave(None)

    def take_output(self) -> list[Message]:
        """The messages to be sent now."""
        output, self._output = self._output, []
        return output

    def room(self, output: Output) -> int:
        """No limit but the transport's."""
        return MAX_WINDOW

    def send(self, output: Output, payload: bytes) -> None:
        """See :class:`.remote_command.RemoteCommand`. Streams not asked for are dropped."""
        wanted = self._options.stdout if output is Output.STDOUT else self._options.stderr
        if wanted and payload and not self._finished:
            self._output += self._codec.encode(output.value, payload)

    def acknowledge(self, size: int) -> None:
        """See :class:`.remote_command.RemoteCommand`."""
        self._unread = max(0, self._unread - size)

    def finish(self, outcome: Outcome) -> None:
        """The outcome on channel 3; the shell then closes with ``close_code``."""
        if self._finished:
            return
        self._finished, self._unread = True, 0
        if words := outcome_bytes(outcome, self._as_status):
            self._output += self._codec.encode(_ERROR, words)

    def _close(self, payload: bytes) -> list[RemoteEvent]:
        if len(payload) != 1 or payload[0] >= _CHANNELS:
            self.close_code = CLOSE_PROTOCOL_ERROR
            return self._leave("a close signal is the byte 255 and one channel from 0 to 4")
        # Clients close stdin only; the others have nothing more to end.
        if payload[0] != _STDIN or not self._stdin_open or self._finished:
            return []
        self._stdin_open = False
        return [StdinClosed()]

    def _leave(self, fault: str | None) -> list[RemoteEvent]:
        if self._gone:
            return []
        self._gone = True
        return [PeerGone(fault)]
