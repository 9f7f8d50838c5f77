"""PURE, sans-I/O. The client's half of a session over SPDY: its frames in the server's terms.

What every session has in common: the client is gone once, and nothing follows.
Fed by the bytes of a :class:`.spdy.SpdyConnection`; feeds :mod:`.remote_command_spdy` and
:mod:`.portforward_spdy`, each of which says what its streams mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from vk_provider.wire.remote_command import PeerGone, RoomAgain
from vk_provider.wire.spdy import SpdyConnection
from vk_provider.wire.spdy_session import (
    ConnectionFailed,
    DataReceived,
    GoAwayReceived,
    SpdyEvent,
    StreamEnded,
    StreamOpened,
    StreamReset,
    WindowOpened,
)

Event = TypeVar("Event")


class SpdyClient(ABC, Generic[Event]):
    """Whoever is on the other side of a connection. ``Event``: what the streams mean."""

    def __init__(self, connection: SpdyConnection) -> None:
        self._connection = connection
        self._gone = False

    def feed(self, chunk: bytes) -> list[Event | RoomAgain | PeerGone]:
        """What these bytes of the client mean. Nothing after PeerGone."""
        translated: list[Event | RoomAgain | PeerGone] = []
        for event in self._connection.events(chunk):
            if not self._gone:
                translated += self._one(event)
        return translated

    def leave(self, fault: str | None = None) -> list[Event | RoomAgain | PeerGone]:
        """PeerGone, once."""
        if self._gone:
            return []
        self._gone = True
        return [PeerGone(fault)]

    def _one(self, event: SpdyEvent) -> list[Event | RoomAgain | PeerGone]:
        match event:
            case StreamOpened():
                return self._opened(event)
            case WindowOpened():
                return [RoomAgain()]
            case GoAwayReceived():
                return self.leave()
            case ConnectionFailed():
                return self.leave(event.message)
            case _:
                return self._moved(event)

    @abstractmethod
    def _opened(self, event: StreamOpened) -> list[Event | RoomAgain | PeerGone]:
        """A stream was opened: it must be accepted or reset."""

    @abstractmethod
    def _moved(
        self, event: DataReceived | StreamEnded | StreamReset
    ) -> list[Event | RoomAgain | PeerGone]:
        """Something came on a stream, or it ended."""
