"""What is fuzzed: whatever a peer sends, nothing raises, hangs or grows, and borders don't matter.

Each target takes one input. Its first byte says how the rest is cut and used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.unit.wire.peer import Peer, control, data, go_away, rst, sent, settings, window, words
from vk_provider.wire.channels import ChannelCodec, Message, WebSocketRemoteCommand
from vk_provider.wire.negotiation import WEBSOCKET_COMMAND_PROTOCOLS
from vk_provider.wire.outcome import Exited
from vk_provider.wire.portforward import ForwardEvent, ForwardingData, ForwardingOpened
from vk_provider.wire.portforward_spdy import SpdyPortForward
from vk_provider.wire.portforward_websocket import WebSocketPortForward
from vk_provider.wire.remote_command import (
    Output,
    RemoteEvent,
    StdinData,
    StreamOptions,
)
from vk_provider.wire.remote_command_spdy import SpdyRemoteCommand
from vk_provider.wire.resize import MAX_BYTES, ResizeReader

_ALL = StreamOptions(stdin=True, stdout=True, stderr=True, tty=True)
_TYPES = ("error", "stdin", "stdout", "stderr", "resize", "data", "", "sideways")
_FRAMES = 8


def spdy(raw: bytes) -> None:
    """A SPDY connection under exec and under port-forward: raw bytes, or acts in good frames."""
    mode, rest = raw[:1], raw[1:]
    if not mode:
        return
    stream = rest if mode[0] & 1 else b"".join(_frames(rest))
    # Many small pieces make a run slow and teach nothing that 64 do not.
    size = max(1 + (mode[0] >> 1), len(stream) // 64)
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert _exec(chunks) == _exec([stream])
    assert _forward(chunks) == _forward([stream])


def messages(raw: bytes) -> None:
    """WebSocket channels of every protocol, the legacy port-forward, and the resize stream."""
    mode, rest = raw[:1], raw[1:]
    if not mode:
        return
    protocol = WEBSOCKET_COMMAND_PROTOCOLS[mode[0] % len(WEBSOCKET_COMMAND_PROTOCOLS)]
    command = WebSocketRemoteCommand(protocol, _ALL)
    forward = WebSocketPortForward(protocol, [80, 443])
    for machine in (command, forward):
        machine.begin()
        for message in _messages(rest, as_text=bool(mode[0] & 128)):
            machine.feed(message)
        machine.feed_eof()
        machine.take_output()
    resizes = ResizeReader()
    resizes.feed(rest)
    assert resizes.pending_bytes <= MAX_BYTES
    codec = ChannelCodec.of(protocol)
    assert [codec.decode(one) for one in codec.encode(1, rest)] == [(1, rest)]


TARGETS: dict[str, Callable[[bytes], None]] = {"spdy": spdy, "messages": messages}


def _messages(raw: bytes, as_text: bool) -> Iterator[Message]:
    """Messages behind one byte of length each."""
    while raw:
        message, raw = raw[1 : 1 + raw[0]], raw[1 + raw[0] :]
        yield message.decode("utf-8", "replace") if as_text else message


def _frames(raw: bytes) -> Iterator[bytes]:
    """Frames of a peer that does what the bytes say: act, stream, argument."""
    peer = Peer()
    for at in range(0, len(raw) - 2, 3):
        act, stream_id, argument = raw[at : at + 3]
        yield _frame(peer, act, stream_id % 16, argument)


def _frame(peer: Peer, act: int, stream_id: int, argument: int) -> bytes:
    flags = argument >> 6
    frames: dict[int, Callable[[], bytes]] = {
        0: lambda: peer.syn(
            stream_id,
            flags & 1,
            streamtype=_TYPES[argument % len(_TYPES)],
            port=str(argument),
            requestid=str(argument >> 4),
        ),
        1: lambda: data(stream_id, bytes([argument]) * argument, flags),
        2: lambda: rst(stream_id, argument),
        3: lambda: window(stream_id, argument << (argument % 24)),
        4: lambda: settings((argument % 10, argument << (argument % 24))),
        5: lambda: control(6, words(argument)),
        6: lambda: peer.headers(stream_id, flags),
        7: lambda: go_away() if argument < 8 else control(1, words(stream_id, 0) + bytes(argument)),
    }
    return frames[act % _FRAMES]()


def _exec(chunks: list[bytes]) -> tuple[list[str], list[Any]]:
    """A session that echoes its input and ends at its end; its events in short, and its bytes."""
    command = SpdyRemoteCommand("v4.channel.k8s.io", _ALL)
    seen, total, output = [], 0, b""
    for chunk in chunks:
        for event in command.feed(chunk):
            total += _consume(command, event)
            if not isinstance(event, StdinData):
                seen.append(repr(event))
        assert not command.paused
        output += command.take_output()
    command.finish(Exited(total % 256))
    command.feed_eof()
    return [*seen, str(total)], _answers(output + command.take_output())


def _consume(command: SpdyRemoteCommand, event: RemoteEvent) -> int:
    if not isinstance(event, StdinData):
        return 0
    command.acknowledge(len(event.payload))
    command.send(Output.STDERR, b"")
    return len(event.payload)


def _forward(chunks: list[bytes]) -> tuple[list[str], list[Any]]:
    """A port-forward whose ports answer nothing and close when all is done."""
    forward = SpdyPortForward()
    seen, total, output, opened = [], 0, b"", []
    for chunk in chunks:
        for event in forward.feed(chunk):
            total += _forwarded(forward, event)
            if isinstance(event, ForwardingOpened):
                opened.append(event.forwarding)
            if not isinstance(event, ForwardingData):
                seen.append(repr(event))
        output += forward.take_output()
    for forwarding in opened:
        forward.end(forwarding)
        forward.close(forwarding)
    forward.feed_eof()
    return [*seen, str(total)], _answers(output + forward.take_output())


def _forwarded(forward: SpdyPortForward, event: ForwardEvent) -> int:
    if not isinstance(event, ForwardingData):
        return 0
    forward.acknowledge(event.forwarding, len(event.payload))
    return len(event.payload)


def _answers(output: bytes) -> list[Any]:
    """What was sent, but for windows: in which pieces they are given back follows the cuts."""
    return [frame for frame in sent(output) if frame[0] != "WINDOW"]
