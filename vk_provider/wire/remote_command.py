"""PURE. Exec and attach as the exec core sees them, whatever carries them.

One core serves two transports: :class:`.remote_command_spdy.SpdyRemoteCommand` (bytes) and
:class:`.channels.WebSocketRemoteCommand` (messages). Both give these events and obey these acts.
Fed by ``server`` (the query); feeds ``server.exec`` and ``server.attach``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from vk_provider.faults import WireError
from vk_provider.wire.outcome import Outcome
from vk_provider.wire.resize import Resize


class StreamQueryError(WireError):
    """The query asks for no stream at all: 400 with this text."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The streams that a request asks for."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


def parse_stream_options(query: Mapping[str, str]) -> StreamOptions:
    """``input``, ``output``, ``error`` and ``tty``, each ``1`` or ignored, as the API server names
    them to a kubelet. With a tty there is no stderr.

    Raises:
        StreamQueryError: none of the three is asked for.
    """
    stdin, stdout, stderr, tty = (query.get(k) == "1" for k in ("input", "output", "error", "tty"))
    stderr = stderr and not tty
    if not (stdin or stdout or stderr):
        raise StreamQueryError("you must specify at least 1 of stdin, stdout, stderr")
    return StreamOptions(stdin, stdout, stderr, tty)


class Output(Enum):
    """What a command writes to. The value is the WebSocket channel and the file descriptor."""

    STDOUT = 1
    STDERR = 2


@dataclass(frozen=True, slots=True)
class Ready:
    """Every stream is there: the command may start. Comes once, before any other event but
    PeerGone."""


@dataclass(frozen=True, slots=True)
class StdinData:
    """Input for the command. Call ``acknowledge`` once it was handed on."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class StdinClosed:
    """The client sends no more input: the command must see its end. Output goes on."""


@dataclass(frozen=True, slots=True)
class RoomAgain:
    """``room`` may have grown for an output, or a forwarding, that had none."""


@dataclass(frozen=True, slots=True)
class PeerGone:
    """The client is gone; the last event. Before ``finish``: cancel the command. After it: that is
    the close that was waited for. ``fault`` says what the peer did wrong, None if nothing."""

    fault: str | None = None


RemoteEvent = Ready | StdinData | StdinClosed | Resize | RoomAgain | PeerGone


class RemoteCommand(Protocol):
    """What both transports have in common. Feed and output are each transport's own.

    The way of a session: ``begin``; feed until Ready (give up after 30 s: ``finish`` with Failed);
    run the command; ``finish``; feed on until PeerGone, 30 to 60 s at most; close the transport. To
    close earlier makes the kernel answer unread input with RST, and the client loses the tail.
    After each call send what ``take_output`` gives; while the transport has no room, do not feed.
    """

    @property
    def paused(self) -> bool:
        """Whether so much input is unacknowledged that the transport should not be read."""

    def begin(self) -> list[RemoteEvent]:
        """The first events, before anything is fed."""

    def room(self, output: Output) -> int:
        """How many bytes may be sent now: without limit to every peer of Kubernetes. 0: wait for
        RoomAgain."""

    def send(self, output: Output, payload: bytes) -> None:
        """Output of the command, at most ``room``. Dropped where nobody listens."""

    def acknowledge(self, size: int) -> None:
        """Bytes of StdinData were handed on."""

    def finish(self, outcome: Outcome) -> None:
        """The command has ended and all output was sent: end the outputs, then the outcome, then
        the rest. Input is discarded from now on. Later calls do nothing."""

    def feed_eof(self) -> list[RemoteEvent]:
        """The transport is closed."""
