"""PURE, sans-I/O. The legacy port-forward over WebSocket: ports fixed by the query, one forwarding
each, and no way to open more or to half-close.

Port number i of the query has channel 2i for data and 2i + 1 for errors. The server first sends on
each of them the port as 2 bytes, little-endian (cri-streaming, ``portforward/websocket.go``).
Fed by ``server`` (messages of aiohttp's WebSocket); feeds ``server.portforward``.
"""

from __future__ import annotations

from collections.abc import Sequence

from vk_provider.wire.channels import CLOSE_NORMAL, ChannelCodec, Message
from vk_provider.wire.portforward import (
    ForwardEvent,
    ForwardingData,
    ForwardingOpened,
    PortQueryError,
)
from vk_provider.wire.remote_command import PeerGone
from vk_provider.wire.spdy_flow import MAX_WINDOW

MAX_PORTS = 128
"""A channel is one byte, 255 of it reserved, and each port has two."""

_PAUSE_BYTES = 512 * 1024


class WebSocketPortForward:
    """A :class:`.portforward.PortForward`; a forwarding is known by its index in the query.

    Raises:
        PortQueryError: more ports than there are channels for.
    """

    close_code = CLOSE_NORMAL
    """To close with once ``done``, or after PeerGone."""

    def __init__(self, protocol: str, ports: Sequence[int]) -> None:
        self._codec = ChannelCodec.of(protocol)
        # A base64 channel is one character from "0" up, and the message must stay ASCII.
        limit = 39 if self._codec.base64 else MAX_PORTS - 1
        if len(ports) > limit:
            raise PortQueryError(f'query parameter "port": {len(ports)} ports, at most {limit}')
        self._ports = tuple(ports)
        self._open = set(range(len(ports)))
        self._unread = dict.fromkeys(self._open, 0)
        self._output: list[Message] = []
        self._gone = False
        self.done = False
        """Whether every forwarding is closed, so that nothing can follow."""

    @property
    def paused(self) -> bool:
        """See :class:`.portforward.PortForward`."""
        return any(unread >= _PAUSE_BYTES for unread in self._unread.values())

    def begin(self) -> list[ForwardEvent]:
        """Every port at once; its number goes out on both its channels."""
        for index, port in enumerate(self._ports):
            for channel in (2 * index, 2 * index + 1):
                self._output += self._codec.encode(channel, port.to_bytes(2, "little"))
        return [ForwardingOpened(index, port) for index, port in enumerate(self._ports)]

    def feed(self, message: Message) -> list[ForwardEvent]:
        """What one message of the client means. Error channels and unknown ones are ignored."""
        decoded = None if self._gone else self._codec.decode(message)
        if decoded is None:
            return []
        index, is_error = divmod(decoded[0], 2)
        if is_error or index not in self._open or not decoded[1]:
            return []
        self._unread[index] += len(decoded[1])
        return [ForwardingData(index, decoded[1])]

    def feed_eof(self) -> list[ForwardEvent]:
        """The client closed the WebSocket, or its connection broke."""
        if self._gone:
            return []
        self._gone = True
        return [PeerGone()]

    def take_output(self) -> list[Message]:
        """The messages to be sent now."""
        output, self._output = self._output, []
        return output

    def room(self, forwarding: int) -> int:
        """No limit but the transport's."""
        return MAX_WINDOW

    def send(self, forwarding: int, payload: bytes) -> None:
        """See :class:`.portforward.PortForward`."""
        if payload and forwarding in self._open:
            self._output += self._codec.encode(2 * forwarding, payload)

    def acknowledge(self, forwarding: int, size: int) -> None:
        """See :class:`.portforward.PortForward`."""
        self._unread[forwarding] = max(0, self._unread[forwarding] - size)

    def end(self, forwarding: int) -> None:
        """Nothing: this protocol can't say it before the forwarding is closed."""

    def close(self, forwarding: int, error: str | None = None) -> None:
        """The error on its channel. The client sees the end when all are ``done``."""
        if error is not None and forwarding in self._open:
            self._output += self._codec.encode(2 * forwarding + 1, error.encode())
        self._open.discard(forwarding)
        self._unread[forwarding] = 0
        self.done = not self._open

    def expire(self, request_id: str) -> None:
        """Nothing: there are no pairs to wait for."""
