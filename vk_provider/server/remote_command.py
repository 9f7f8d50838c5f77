"""The core of exec and attach, whatever carries them: from the first stream to the last byte.

The order of an end: all output, then the outcome, then the client's own close is waited for. A
connection that is closed earlier loses its tail, and the client takes that for success.
Fed by :mod:`.exec` and :mod:`.attach`; feeds a provider through ``ContainerIO``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from vk_provider.server.conversation import Conversation, end_reading
from vk_provider.server.wires import Wire
from vk_provider.streams import CHUNK_BYTES, ContainerIO, TerminalSize
from vk_provider.wire.channels import CLOSE_NORMAL, WebSocketRemoteCommand
from vk_provider.wire.outcome import Failed, Outcome
from vk_provider.wire.remote_command import (
    Output,
    PeerGone,
    Ready,
    RemoteCommand,
    RemoteEvent,
    RoomAgain,
    StdinClosed,
    StdinData,
)
from vk_provider.wire.remote_command_spdy import SpdyRemoteCommand
from vk_provider.wire.resize import Resize

_log = logging.getLogger(__name__)

Work = Callable[[ContainerIO], Awaitable[Outcome]]
"""What is done with the client's streams: calls the provider, never raises its faults."""

_LAST_WORDS_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """How patient a stream is: a real kubelet's times.

    ``creation_seconds`` for the client to open its streams, ``idle_seconds`` without a byte in
    either direction, ``close_seconds`` for the client to take the outcome and leave,
    ``cancel_seconds`` for a provider to end what nobody listens to any more. ``look_seconds`` is
    how often a client is looked after whose input nobody takes.
    """

    creation_seconds: float = 30.0
    idle_seconds: float = 4 * 3600.0
    close_seconds: float = 30.0
    cancel_seconds: float = 10.0
    look_seconds: float = 5.0


class ClientIO:
    """The client's streams as a provider sees them; see ``ContainerIO``."""

    def __init__(self, command: RemoteCommand) -> None:
        self._command = command
        self._input: deque[bytes] = deque()
        self._input_ended = False
        self._input_came = asyncio.Event()
        self._size: TerminalSize | None = None
        self._size_came = asyncio.Event()
        self._room_came = asyncio.Event()
        self.conversation: Conversation[Any, Any, RemoteEvent]
        self.ready = asyncio.Event()

    def obey(self, event: RemoteEvent) -> None:
        """Take one event of the machine."""
        match event:
            case Ready():
                self.ready.set()
            case StdinData():
                self._input.append(event.payload)
                self._input_came.set()
            case StdinClosed():
                self._input_ended = True
                self._input_came.set()
            case Resize():
                self._size = TerminalSize(event.width, event.height)
                self._size_came.set()
            case RoomAgain():
                self._room_came.set()
            case PeerGone():
                self._gone(event)

    async def stdin(self) -> AsyncIterator[bytes]:
        """See ``ContainerIO``. What was handed on makes room for more."""
        while True:
            while not self._input:
                if self._input_ended:
                    return
                self._input_came.clear()
                await self._input_came.wait()
            payload = self._input.popleft()
            for start in range(0, len(payload), CHUNK_BYTES):
                yield payload[start : start + CHUNK_BYTES]
            self._command.acknowledge(len(payload))
            self.conversation.ease()
            await self.conversation.flush()

    async def write_stdout(self, chunk: bytes) -> None:
        """See ``ContainerIO``."""
        await self._write(Output.STDOUT, chunk)

    async def write_stderr(self, chunk: bytes) -> None:
        """See ``ContainerIO``."""
        await self._write(Output.STDERR, chunk)

    async def resizes(self) -> AsyncIterator[TerminalSize]:
        """See ``ContainerIO``. Sizes that nobody saw in time are skipped: the last one counts."""
        while True:
            while self._size is None:
                self._size_came.clear()
                await self._size_came.wait()
            size, self._size = self._size, None
            yield size

    async def _write(self, output: Output, chunk: bytes) -> None:
        rest = memoryview(chunk)
        while rest:
            room = min(self._command.room(output), CHUNK_BYTES)
            if room == 0:
                self._room_came.clear()
                await self._room_came.wait()
                continue
            self._command.send(output, bytes(rest[:room]))
            rest = rest[room:]
            await self.conversation.flush()

    def _gone(self, event: PeerGone) -> None:
        if event.fault is not None:
            _log.warning("a client of exec or attach broke the protocol: %s", event.fault)
        # Its input has no end then: a command must not take half of it for the whole.
        self.conversation.over()


class RemoteSession:
    """One client with one command."""

    def __init__(
        self,
        command: SpdyRemoteCommand | WebSocketRemoteCommand,
        wire: Wire[Any, Any],
        times: StreamTimes,
    ) -> None:
        self._command = command
        self._wire = wire
        self._times = times
        self._io = ClientIO(command)
        self._io.conversation = self._conversation = Conversation(
            command, wire, self._io.obey, times.look_seconds
        )

    async def run(self, work: Work) -> None:
        """To the end, however it comes. Cancelled: the client is told so first."""
        reading = asyncio.create_task(self._conversation.read())
        try:
            outcome = await self._outcome(reading, work)
            if outcome is not None:
                await self._tell(outcome)
                if isinstance(self._command, SpdyRemoteCommand):
                    # It is the client that closes; a WebSocket's goodbye is ours to begin.
                    await asyncio.wait({reading}, timeout=self._times.close_seconds)
        except asyncio.CancelledError:
            self._command.finish(Failed("the node's server is stopping"))
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await self._conversation.flush()
                    if isinstance(self._command, SpdyRemoteCommand):
                        await asyncio.wait({reading})
            raise
        finally:
            try:
                await end_reading(reading)
                await self._wire.close(getattr(self._command, "close_code", CLOSE_NORMAL))
            finally:
                self._conversation.part()

    async def _tell(self, outcome: Outcome) -> None:
        self._command.finish(outcome)
        self._conversation.ease()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._times.idle_seconds):
                await self._conversation.flush()

    async def _outcome(self, reading: asyncio.Task[None], work: Work) -> Outcome | None:
        """How it ended; None when the client is gone, so that nobody is left to be told."""
        opening = asyncio.create_task(self._io.ready.wait())
        try:
            waits: set[asyncio.Task[Any]] = {opening, reading}
            await asyncio.wait(
                waits,
                timeout=self._times.creation_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            opening.cancel()
        if reading.done():
            return None
        if not self._io.ready.is_set():
            return Failed("timed out waiting for client to create streams")
        working = asyncio.ensure_future(work(self._io))
        try:
            return await self._until_over(reading, working)
        finally:
            await self._end(working)

    async def _until_over(
        self, reading: asyncio.Task[None], working: asyncio.Future[Outcome]
    ) -> Outcome | None:
        while not reading.done():
            left = self._times.idle_seconds - self._conversation.idle_seconds()
            if left <= 0:
                return Failed(f"no byte in either direction for {self._times.idle_seconds:g} s")
            waits: set[asyncio.Future[Any]] = {reading, working}
            await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return _result(working)
        return None

    async def _end(self, working: asyncio.Future[Outcome]) -> None:
        """Nobody listens any more: the remote command ends, too."""
        if working.done():
            return
        working.cancel()
        await asyncio.wait({working}, timeout=self._times.cancel_seconds)
        if not working.done():
            _log.warning("a backend does not end a command whose client is gone")
        else:
            _result(working)


def _result(working: asyncio.Future[Outcome]) -> Outcome:
    """The outcome; a fault that the provider never said it would raise is our bug or its."""
    if working.cancelled():
        return Failed("the command was cancelled")
    fault = working.exception()
    if fault is None:
        return working.result()
    _log.error("exec or attach failed unexpectedly", exc_info=fault)
    return Failed(f"unexpected {type(fault).__name__} in the provider; see vk-provider's log")
