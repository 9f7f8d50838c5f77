"""PURE, sans-I/O. Port-forward over SPDY: pairs of an error and a data stream.

Headers of both: ``streamType`` (error or data), ``port``, ``requestID``, on the wire in lower case.
kubectl opens the error stream first and half-closes it at once; pairs interleave, so they are
joined by request id; without one (old clients) the data stream's id is the error stream's + 2.
Fed by ``server`` (bytes of the hijacked connection, or of a ``SPDY/3.1+portforward.k8s.io`` tunnel,
where message borders mean nothing); feeds ``server.portforward``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vk_provider.faults import WireError
from vk_provider.wire.portforward import (
    ForwardEvent,
    ForwardingData,
    ForwardingEnded,
    ForwardingLost,
    ForwardingOpened,
    PairStarted,
    parse_port,
)
from vk_provider.wire.spdy import SpdyConnection
from vk_provider.wire.spdy_client import SpdyClient
from vk_provider.wire.spdy_frames import ResetStatus
from vk_provider.wire.spdy_session import (
    DEFAULT_LIMITS,
    DataReceived,
    SpdyLimits,
    StreamEnded,
    StreamOpened,
    StreamReset,
)


class SpdyPortForward:
    """A :class:`.portforward.PortForward`; a forwarding is known by the id of its data stream."""

    def __init__(self, limits: SpdyLimits = DEFAULT_LIMITS) -> None:
        self._connection = SpdyConnection(limits)
        self._client = _Client(self._connection)

    @property
    def paused(self) -> bool:
        """See :class:`.portforward.PortForward`."""
        return self._connection.paused

    def begin(self) -> list[ForwardEvent]:
        """Nothing: the client speaks first."""
        return []

    def feed(self, chunk: bytes) -> list[ForwardEvent]:
        """What these bytes of the client mean. Nothing after PeerGone."""
        return self._client.feed(chunk)

    def feed_eof(self) -> list[ForwardEvent]:
        """The client closed the connection."""
        return self._client.leave()

    def take_output(self) -> bytes:
        """The bytes to be sent now; in a tunnel, as one binary message."""
        return self._connection.take_output()

    def room(self, forwarding: int) -> int:
        """See :class:`.portforward.PortForward`."""
        return self._connection.room(forwarding)

    def send(self, forwarding: int, payload: bytes) -> None:
        """See :class:`.portforward.PortForward`."""
        known = self._client.forwardings.get(forwarding)
        if known is not None and not known.we_ended:
            self._connection.send(forwarding, payload)

    def acknowledge(self, forwarding: int, size: int) -> None:
        """See :class:`.portforward.PortForward`."""
        self._connection.acknowledge(forwarding, size)

    def end(self, forwarding: int) -> None:
        """FIN of the data stream."""
        known = self._client.forwardings.get(forwarding)
        if known is not None and not known.we_ended:
            known.we_ended = True
            self._connection.finish(forwarding)

    def close(self, forwarding: int, error: str | None = None) -> None:
        """FIN of both streams; the client answers by resetting the data stream. With an error: its
        text on the error stream, and RST of the data stream. kubectl prints it and gives up the
        whole connection, as it does on a real node."""
        known = self._client.forwardings.get(forwarding)
        if known is None:
            return
        if error is None:
            self.end(forwarding)
            self._connection.acknowledge(forwarding)
        else:
            self._connection.send(known.error_stream, error.encode())
            self._connection.reset(forwarding)
        self._connection.finish(known.error_stream)
        del self._client.forwardings[forwarding]

    def expire(self, request_id: str) -> None:
        """A sentence on the error stream if that is the half that came, RST of the other."""
        pair = self._client.pairs.get(request_id)
        if pair is None:
            return
        self._client.give_up(pair.first)
        if pair.error_stream is None:
            self._connection.reset(pair.first)
            return
        text = f"request {request_id}: timed out waiting for streams"
        self._connection.send(pair.error_stream, text.encode())
        self._connection.finish(pair.error_stream)


@dataclass(slots=True)
class _Pair:
    """What has come of a forwarding until both its streams are there."""

    first: int
    error_stream: int | None = None
    data_stream: int | None = None
    port: int = 0
    early: list[ForwardEvent] = field(default_factory=list)


@dataclass(slots=True)
class _Forwarding:
    error_stream: int
    we_ended: bool = False


class _Client(SpdyClient[ForwardEvent]):
    """Which streams belong together, and what comes on them."""

    def __init__(self, connection: SpdyConnection) -> None:
        super().__init__(connection)
        self.pairs: dict[str, _Pair] = {}
        """By request id, until complete: an id may be used again then."""
        self._request_ids: dict[int, str] = {}
        """The request id of a stream whose pair is not complete."""
        self.forwardings: dict[int, _Forwarding] = {}
        """By data stream, until closed by us or lost."""

    def give_up(self, stream_id: int) -> None:
        """Forget the half that came of a pair."""
        request_id = self._request_ids.pop(stream_id, None)
        if request_id is not None:
            del self.pairs[request_id]

    def _opened(self, event: StreamOpened) -> list[ForwardEvent]:
        kind, stream_id = event.headers.get("streamtype", ""), event.stream_id
        try:
            port = parse_port(event.headers.get("port", ""))
        except WireError:
            port = 0
        if not port or kind not in ("error", "data"):
            self._connection.reset(stream_id, ResetStatus.PROTOCOL_ERROR)
            return []
        implied = stream_id if kind == "error" else stream_id - 2
        request_id = event.headers.get("requestid") or str(implied)
        pair = self.pairs.setdefault(request_id, _Pair(stream_id))
        taken = pair.error_stream if kind == "error" else pair.data_stream
        if taken is not None:
            self._connection.reset(stream_id, ResetStatus.PROTOCOL_ERROR)
            return []
        self._connection.accept(stream_id)
        if kind == "error":
            pair.error_stream = stream_id
        else:
            pair.data_stream, pair.port = stream_id, port
        return self._paired(request_id, pair)

    def _paired(self, request_id: str, pair: _Pair) -> list[ForwardEvent]:
        if pair.error_stream is None or pair.data_stream is None:
            self._request_ids[pair.first] = request_id
            return [PairStarted(request_id)]
        self.give_up(pair.first)
        self.forwardings[pair.data_stream] = _Forwarding(pair.error_stream)
        return [ForwardingOpened(pair.data_stream, pair.port, request_id), *pair.early]

    def _moved(self, event: DataReceived | StreamEnded | StreamReset) -> list[ForwardEvent]:
        if isinstance(event, StreamReset):
            return self._reset(event.stream_id)
        return self._deliver(event)

    def _deliver(self, event: DataReceived | StreamEnded) -> list[ForwardEvent]:
        """What the server gets of an open forwarding now, and of a pair that is not complete later.
        The rest (error streams, closed forwardings) is nobody's."""
        stream_id = event.stream_id
        given: ForwardEvent = ForwardingEnded(stream_id)
        if isinstance(event, DataReceived):
            given = ForwardingData(stream_id, event.payload)
        if stream_id in self.forwardings:
            return [given]
        pair = self.pairs.get(self._request_ids.get(stream_id, ""))
        if pair is not None and pair.data_stream == stream_id:
            pair.early.append(given)
        elif isinstance(event, DataReceived):
            self._connection.acknowledge(stream_id, len(event.payload))
        return []

    def _reset(self, stream_id: int) -> list[ForwardEvent]:
        known = self.forwardings.pop(stream_id, None)
        if known is not None:
            self._connection.finish(known.error_stream)
            return [ForwardingLost(stream_id)]
        self.give_up(stream_id)
        return []
