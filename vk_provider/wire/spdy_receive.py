"""PURE. Each frame of a SPDY peer: a legal next state and an event, or a fault that is answered.

Facts of the peer (moby/spdystream, under kube-apiserver and kubectl) that shape this file: it sends
DATA without any window, pings with odd ids, and ends with RST_STREAM per stream, then GOAWAY.
Fed by :class:`.spdy.SpdyConnection`; changes its session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vk_provider.faults import WireError
from vk_provider.wire.spdy_flow import CONNECTION
from vk_provider.wire.spdy_frames import (
    SETTING_INITIAL_WINDOW_SIZE,
    BadFrame,
    DataPiece,
    Frame,
    FrameType,
    GoAway,
    Headers,
    Ping,
    ResetStatus,
    RstStream,
    Settings,
    SynReply,
    SynStream,
    WindowUpdate,
    control_frame,
    one_word,
)
from vk_provider.wire.spdy_session import (
    DataReceived,
    GoAwayReceived,
    Session,
    StreamEnded,
    StreamOpened,
    StreamReset,
    WindowOpened,
)
from vk_provider.wire.spdy_states import StreamInput, StreamState, peer_moves, violation


def receive(session: Session, frame: Frame) -> None:
    """Take one frame. A session that failed takes none."""
    if not session.failed:
        _RECEIVERS[type(frame)](session, frame)


def _bad_frame(session: Session, frame: BadFrame) -> None:
    session.fail(frame.message)


def _syn_stream(session: Session, frame: SynStream) -> None:
    headers = _headers_of(session, frame.block)
    # After GOAWAY a peer opens nothing; what it had sent before is told by the id it named.
    if headers is None or session.gone_away:
        return
    stream_id = frame.stream_id
    if stream_id % 2 == 0:
        session.stream_fault(stream_id, ResetStatus.PROTOCOL_ERROR)
        return
    if frame.unidirectional or len(session.streams) >= session.limits.streams:
        session.last_id = max(session.last_id, stream_id)
        session.stream_fault(stream_id, ResetStatus.REFUSED_STREAM)
        return
    if not _moved(session, stream_id, StreamInput.PEER_OPENS):
        return
    session.last_id = stream_id
    session.windows.open(stream_id)
    session.unread.open(stream_id)
    session.events.append(StreamOpened(stream_id, headers))
    if frame.fin:
        _end(session, stream_id)


def _syn_reply(session: Session, frame: SynReply) -> None:
    _moved(session, frame.stream_id, StreamInput.PEER_REPLIES)


def _more_headers(session: Session, frame: Headers) -> None:
    # Kubernetes puts nothing into them, but they are part of the zlib stream and may end a stream.
    if _headers_of(session, frame.block) is None:
        return
    if frame.fin:
        _end(session, frame.stream_id)
    else:
        _moved(session, frame.stream_id, StreamInput.PEER_SENDS)


def _data(session: Session, piece: DataPiece) -> None:
    stream_id, size = piece.stream_id, len(piece.payload)
    state = session.state(stream_id)
    if state is StreamState.IDLE and not piece.first:
        return
    if not _moved(session, stream_id, StreamInput.PEER_SENDS) or state is StreamState.CLOSED:
        session.unread.dropped(size)
        return
    if size:
        session.events.append(DataReceived(stream_id, piece.payload))
        if not session.unread.received(stream_id, size):
            session.stream_fault(stream_id, ResetStatus.FLOW_CONTROL_ERROR)
        if session.unread.overflown:
            session.fail("more bytes in flight than this connection may hold")
    if piece.fin and not session.failed:
        _end(session, stream_id)


def _rst_stream(session: Session, frame: RstStream) -> None:
    live = frame.stream_id in session.streams
    _moved(session, frame.stream_id, StreamInput.PEER_RESETS)
    if live:
        session.unread.forget(frame.stream_id)
        session.events.append(StreamReset(frame.stream_id, frame.status))


def _settings(session: Session, frame: Settings) -> None:
    for key, value in frame.entries:
        if key == SETTING_INITIAL_WINDOW_SIZE and not session.windows.set_initial(value):
            session.fail(f"SETTINGS with an initial window of {value} bytes")
            return
    if session.windows.kept:
        session.events.append(WindowOpened())


def _ping(session: Session, frame: Ping) -> None:
    # Even ids would answer pings of ours; we send none.
    if frame.ping_id % 2 == 1:
        session.output.append(control_frame(FrameType.PING, one_word(frame.ping_id)))


def _go_away(session: Session, frame: GoAway) -> None:
    if not session.gone_away:
        session.gone_away = True
        session.events.append(GoAwayReceived(frame.status))


def _window_update(session: Session, frame: WindowUpdate) -> None:
    if session.windows.widen(frame.stream_id, frame.delta):
        session.events.append(WindowOpened())
    elif frame.stream_id == CONNECTION:
        session.fail(f"WINDOW_UPDATE of {frame.delta} for the connection")
    else:
        session.stream_fault(frame.stream_id, ResetStatus.FLOW_CONTROL_ERROR)


def _headers_of(session: Session, block: bytes) -> dict[str, str] | None:
    try:
        return session.header_reader.read(block)
    except WireError as error:
        session.fail(str(error))
        return None


def _end(session: Session, stream_id: int) -> None:
    was_closed = session.state(stream_id) is StreamState.CLOSED
    if _moved(session, stream_id, StreamInput.PEER_ENDS) and not was_closed:
        session.unread.settle(stream_id)
        session.events.append(StreamEnded(stream_id))


def _moved(session: Session, stream_id: int, peer_input: StreamInput) -> bool:
    """Move a stream as the table says; False where it says nothing, and the fault is answered."""
    state = session.state(stream_id)
    after = peer_moves(state, peer_input)
    if after is None:
        status = violation(state, peer_input)
        if status is None:
            session.fail(f"{peer_input.value} for stream {stream_id}, which is {state.value}")
        else:
            session.stream_fault(stream_id, status)
        return False
    if after is not StreamState.IDLE:
        session.move(stream_id, after)
    return True


_RECEIVERS: dict[type[Frame], Callable[[Session, Any], None]] = {
    BadFrame: _bad_frame,
    SynStream: _syn_stream,
    SynReply: _syn_reply,
    Headers: _more_headers,
    DataPiece: _data,
    RstStream: _rst_stream,
    Settings: _settings,
    Ping: _ping,
    GoAway: _go_away,
    WindowUpdate: _window_update,
}
