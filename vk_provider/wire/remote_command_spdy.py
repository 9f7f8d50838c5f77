"""PURE, sans-I/O. Exec and attach over SPDY: one stream each for error, stdin, stdout, stderr and
resize, told apart by the header ``streamType`` (on the wire in lower case).

The client opens one stream, waits for its SYN_REPLY, opens the next; the command may start when all
that the request asks for are there: error, one per flag, and resize with a tty from v3 on.
Fed by ``server`` (bytes of the hijacked connection); feeds the exec core.
"""

from __future__ import annotations

from collections.abc import Sequence

from vk_provider.wire.outcome import Outcome, outcome_bytes
from vk_provider.wire.remote_command import (
    Output,
    Ready,
    RemoteEvent,
    StdinClosed,
    StdinData,
    StreamOptions,
)
from vk_provider.wire.resize import ResizeReader
from vk_provider.wire.spdy import SpdyConnection
from vk_provider.wire.spdy_client import SpdyClient
from vk_provider.wire.spdy_frames import ResetStatus
from vk_provider.wire.spdy_session import (
    DataReceived,
    SpdyLimits,
    StreamEnded,
    StreamOpened,
    StreamReset,
)

EXEC_LIMITS = SpdyLimits(streams=16, stream_faults=16)
"""A session has five streams at most."""

_ENDING_ORDER = ("stdout", "stderr", "error", "stdin", "resize")
_STATUS_PROTOCOLS = frozenset({"v4.channel.k8s.io", "v5.channel.k8s.io"})
_RESIZE_PROTOCOLS = _STATUS_PROTOCOLS | {"v3.channel.k8s.io"}


class SpdyRemoteCommand:
    """A :class:`.remote_command.RemoteCommand` over the bytes of a SPDY connection.

    ``protocol`` is what was negotiated. A type twice, or an unknown one, is refused. Streams that
    nobody asked for are accepted, as a kubelet does, and stay silent.
    """

    def __init__(
        self, protocol: str, options: StreamOptions, limits: SpdyLimits = EXEC_LIMITS
    ) -> None:
        self._connection = SpdyConnection(limits)
        self._client = _Client(self._connection, _awaited(protocol, options))
        self._as_status = protocol in _STATUS_PROTOCOLS

    @property
    def paused(self) -> bool:
        """See :class:`.remote_command.RemoteCommand`."""
        return self._connection.paused

    def begin(self) -> list[RemoteEvent]:
        """Nothing: the client speaks first."""
        return []

    def feed(self, chunk: bytes) -> list[RemoteEvent]:
        """What these bytes of the client mean. Nothing after PeerGone."""
        return self._client.feed(chunk)

    def feed_eof(self) -> list[RemoteEvent]:
        """The client closed the connection."""
        return self._client.leave()

    def take_output(self) -> bytes:
        """The bytes to be sent now."""
        return self._connection.take_output()

    def room(self, output: Output) -> int:
        """See :class:`.remote_command.RemoteCommand`."""
        stream_id = self._client.ids.get(output.name.lower(), 0)
        return self._connection.room(stream_id)

    def send(self, output: Output, payload: bytes) -> None:
        """See :class:`.remote_command.RemoteCommand`."""
        stream_id = self._client.ids.get(output.name.lower())
        if stream_id is not None and not self._client.finished:
            self._connection.send(stream_id, payload)

    def acknowledge(self, size: int) -> None:
        """See :class:`.remote_command.RemoteCommand`."""
        self._connection.acknowledge(self._client.ids.get("stdin", 0), size)

    def finish(self, outcome: Outcome) -> None:
        """FIN of stdout and stderr, then the outcome and FIN of error, then FIN of the rest."""
        if self._client.finished:
            return
        for name in _ENDING_ORDER:
            if (stream_id := self._client.ids.get(name)) is not None:
                if name == "error":
                    self._connection.send(stream_id, outcome_bytes(outcome, self._as_status))
                self._connection.finish(stream_id)
        self._client.finish()


class _Client(SpdyClient[RemoteEvent]):
    """Which stream is which, and what comes on it means to the command."""

    def __init__(self, connection: SpdyConnection, awaited: frozenset[str]) -> None:
        super().__init__(connection)
        self._awaited = awaited
        self._resizes = ResizeReader()
        # What came before the last stream was opened; the connection's limits bound it.
        self._early: list[RemoteEvent] = []
        self._ready = False
        self._stdin_ended = False
        self.finished = False
        self.ids: dict[str, int] = {}

    def finish(self) -> None:
        """Discard input from now on, also what the core still holds: it may not dam up the close
        that is waited for."""
        self.finished = True
        self._early.clear()
        for stream_id in self.ids.values():
            self._connection.acknowledge(stream_id)

    def _opened(self, event: StreamOpened) -> list[RemoteEvent]:
        stream_id, name = event.stream_id, event.headers.get("streamtype", "")
        if self.finished or name in self.ids or name not in _ENDING_ORDER:
            self._connection.reset(stream_id, ResetStatus.REFUSED_STREAM)
            return []
        self.ids[name] = stream_id
        self._connection.accept(stream_id)
        if self._ready or not self._awaited <= self.ids.keys():
            return []
        self._ready = True
        early, self._early = self._early, []
        return [Ready(), *early]

    def _moved(self, event: DataReceived | StreamEnded | StreamReset) -> list[RemoteEvent]:
        return self._received(event) if isinstance(event, DataReceived) else self._ended(event)

    def _received(self, event: DataReceived) -> list[RemoteEvent]:
        if self._is("stdin", event.stream_id) and not self.finished:
            return self._when_ready([StdinData(event.payload)])
        self._connection.acknowledge(event.stream_id, len(event.payload))
        if self._is("resize", event.stream_id) and not self.finished:
            return self._when_ready(self._resizes.feed(event.payload))
        return []

    def _ended(self, event: StreamEnded | StreamReset) -> list[RemoteEvent]:
        if self.finished:
            return []
        if self._is("stdin", event.stream_id):
            ended, self._stdin_ended = self._stdin_ended, True
            return [] if ended else self._when_ready([StdinClosed()])
        # Without an error stream nobody would learn how the command ends.
        lost = isinstance(event, StreamReset) and self._is("error", event.stream_id)
        return self.leave() if lost else []

    def _when_ready(self, events: Sequence[RemoteEvent]) -> list[RemoteEvent]:
        if self._ready:
            return list(events)
        self._early += events
        return []

    def _is(self, name: str, stream_id: int) -> bool:
        return name in self._awaited and self.ids.get(name) == stream_id


def _awaited(protocol: str, options: StreamOptions) -> frozenset[str]:
    wanted = {
        "error": True,
        "stdin": options.stdin,
        "stdout": options.stdout,
        "stderr": options.stderr,
        "resize": options.tty and protocol in _RESIZE_PROTOCOLS,
    }
    return frozenset(name for name, is_wanted in wanted.items() if is_wanted)
