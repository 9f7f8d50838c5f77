"""PURE. Port-forward as the server sees it, whatever carries it.

A **forwarding** is one connection that the client wants to a port. One core serves two transports:
:class:`.portforward_spdy.SpdyPortForward` (bytes, also those inside a WebSocket tunnel) and
:class:`.portforward_websocket.WebSocketPortForward` (messages, fixed ports).
Fed by ``server`` (the query); feeds ``server.portforward``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from vk_provider.faults import WireError
from vk_provider.wire.remote_command import PeerGone, RoomAgain

_NUMBER = re.compile(r"[0-9]{1,7}")


class PortQueryError(WireError):
    """The ports of a WebSocket port-forward can't be read: 400 with this text."""


def parse_port(text: str) -> int:
    """A port from 1 to 65535 in decimal digits, as Go reads it.

    Raises:
        WireError: with the kubelet's sentence.
    """
    if not _NUMBER.fullmatch(text):
        raise WireError(f'unable to parse "{text}" as a port: invalid syntax')
    port = int(text)
    if port > 0xFFFF:
        raise WireError(f'unable to parse "{text}" as a port: value out of range')
    if port < 1:
        raise WireError(f'port "{text}" must be > 0')
    return port


def parse_ports(values: Sequence[str]) -> list[int]:
    """The ``port`` parameters of a legacy WebSocket port-forward: ``port=80,81&port=82``.

    Raises:
        PortQueryError: none, an empty one, or one that is no port.
    """
    if not values:
        raise PortQueryError('query parameter "port" is required')
    if "" in values:
        raise PortQueryError('query parameter "port" cannot be empty')
    try:
        return [parse_port(text) for value in values for text in value.split(",")]
    except WireError as error:
        raise PortQueryError(str(error)) from error


def forward_error(port: int, pod: str, uid: str, reason: str) -> str:
    """What a kubelet writes on the error stream when it could not forward."""
    return f"error forwarding port {port} to pod {pod}, uid {uid}: {reason}"


@dataclass(frozen=True, slots=True)
class PairStarted:
    """Half of a forwarding has arrived. If no ForwardingOpened with this request id follows within
    30 s, call ``expire``."""

    request_id: str


@dataclass(frozen=True, slots=True)
class ForwardingOpened:
    """Connect to the port; ``request_id`` ends the wait of PairStarted. Its data may follow at
    once: hold it, within the bounds of ``paused``, until the connection stands."""

    forwarding: int
    port: int
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class ForwardingData:
    """Bytes for the port. Call ``acknowledge`` once they were handed on."""

    forwarding: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class ForwardingEnded:
    """The client sends no more on this forwarding, and reads on (half-close)."""

    forwarding: int


@dataclass(frozen=True, slots=True)
class ForwardingLost:
    """The client tore this forwarding down: close the connection to the port."""

    forwarding: int


ForwardEvent = (
    PairStarted | ForwardingOpened | ForwardingData | ForwardingEnded | ForwardingLost | RoomAgain
    | PeerGone
)  # fmt: skip


class PortForward(Protocol):
    """What both transports have in common. Feed and output are each transport's own.

    After each call send what ``take_output`` gives; while the transport has no room, do not feed.
    Acts on a forwarding that is over do nothing. PeerGone ends all of them.
    """

    @property
    def paused(self) -> bool:
        """Whether so much is unacknowledged that the transport should not be read. One slow port
        so stalls its connection, as it does on a real node."""

    def begin(self) -> list[ForwardEvent]:
        """The first events, before anything is fed."""

    def room(self, forwarding: int) -> int:
        """How many bytes may be sent now: without limit to every peer of Kubernetes."""

    def send(self, forwarding: int, payload: bytes) -> None:
        """Bytes from the port, at most ``room``."""

    def acknowledge(self, forwarding: int, size: int) -> None:
        """Bytes of ForwardingData were handed on."""

    def end(self, forwarding: int) -> None:
        """The port has closed its direction; the client may send on where it can half-close."""

    def close(self, forwarding: int, error: str | None = None) -> None:
        """The connection to the port is over, or with an error: could not be made, or broke (see
        :func:`forward_error`). What the client still sends is discarded."""

    def expire(self, request_id: str) -> None:
        """The other half of a pair did not come in time."""

    def feed_eof(self) -> list[ForwardEvent]:
        """The transport is closed."""
