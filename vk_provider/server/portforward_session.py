"""One client of port-forward with all its connections, whatever carries them.

Each lives and dies alone: a port that refuses or closes ends its own forwarding, never the others.
Fed by :mod:`.portforward`; runs one :class:`.forwarding.Forwarding` for each.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from vk_provider.server.conversation import Conversation, end_reading
from vk_provider.server.forwarding import Forwarding, Target
from vk_provider.server.remote_command import StreamTimes
from vk_provider.server.wires import Wire
from vk_provider.streams import CHUNK_BYTES
from vk_provider.wire.channels import CLOSE_NORMAL
from vk_provider.wire.portforward import (
    ForwardEvent,
    ForwardingData,
    ForwardingEnded,
    ForwardingLost,
    ForwardingOpened,
    PairStarted,
)
from vk_provider.wire.portforward_spdy import SpdyPortForward
from vk_provider.wire.portforward_websocket import WebSocketPortForward
from vk_provider.wire.remote_command import PeerGone, RoomAgain

_log = logging.getLogger(__name__)


class _Client:
    """The client, and what its machine says; shared by all forwardings."""

    def __init__(
        self, machine: SpdyPortForward | WebSocketPortForward, wire: Wire[Any, Any]
    ) -> None:
        self.machine = machine
        self.wire = wire
        self.room_came = asyncio.Event()
        self.all_done = asyncio.Event()
        self.conversation: Conversation[Any, Any, ForwardEvent]

    async def flush(self) -> None:
        """Send what the machine says."""
        await self.conversation.flush()

    async def finish(self, number: int, error: str | None) -> None:
        """A forwarding is over."""
        self.machine.close(number, error)
        self.conversation.ease()
        await self.flush()
        if isinstance(self.machine, WebSocketPortForward) and self.machine.done:
            self.all_done.set()


class _Side:
    """The client's end of one forwarding: implements ``forwarding.ClientSide``."""

    def __init__(self, client: _Client, number: int) -> None:
        self._client = client
        self._number = number
        self.half_closes = isinstance(client.machine, SpdyPortForward)

    async def taken(self, size: int) -> None:
        self._client.machine.acknowledge(self._number, size)
        self._client.conversation.ease()
        await self._client.flush()

    async def send(self, chunk: bytes) -> None:
        rest = memoryview(chunk)
        while rest:
            room = min(self._client.machine.room(self._number), CHUNK_BYTES)
            if room == 0:
                self._client.room_came.clear()
                await self._client.room_came.wait()
                continue
            self._client.machine.send(self._number, bytes(rest[:room]))
            rest = rest[room:]
            await self._client.flush()

    async def send_end(self) -> None:
        self._client.machine.end(self._number)
        await self._client.flush()


class ForwardSession:
    """One connection of a client."""

    def __init__(
        self,
        machine: SpdyPortForward | WebSocketPortForward,
        wire: Wire[Any, Any],
        target: Target,
        times: StreamTimes,
    ) -> None:
        self._client = _Client(machine, wire)
        self._client.conversation = self._conversation = Conversation(
            machine, wire, self._obey, times.look_seconds
        )
        self._target = target
        self._times = times
        self._forwardings: dict[int, tuple[Forwarding, asyncio.Task[None]]] = {}
        self._pairs: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the client is gone, has been silent for too long, or has nothing more to get."""
        reading = asyncio.create_task(self._conversation.read())
        done = asyncio.create_task(self._client.all_done.wait())
        try:
            while not (reading.done() or done.done()):
                left = self._times.idle_seconds - self._conversation.idle_seconds()
                if left <= 0:
                    break
                waits: set[asyncio.Task[Any]] = {reading, done}
                await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            done.cancel()
            try:
                await self._close(reading)
            finally:
                self._conversation.part()

    async def _close(self, reading: asyncio.Task[None]) -> None:
        for timer in self._pairs.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=self._times.cancel_seconds)
        await end_reading(reading)
        await self._client.wire.close(getattr(self._client.machine, "close_code", CLOSE_NORMAL))

    def _obey(self, event: ForwardEvent) -> None:
        match event:
            case PairStarted():
                self._await_pair(event.request_id)
            case ForwardingOpened():
                self._opened(event)
            case RoomAgain():
                self._client.room_came.set()
            case PeerGone():
                if event.fault is not None:
                    _log.warning("a client of port-forward broke the protocol: %s", event.fault)
                self._conversation.over()
            case _:
                self._hand_on(event)

    def _await_pair(self, request_id: str) -> None:
        loop = asyncio.get_running_loop()
        self._pairs[request_id] = loop.call_later(
            self._times.creation_seconds, self._expire, request_id
        )

    def _expire(self, request_id: str) -> None:
        self._pairs.pop(request_id, None)
        self._client.machine.expire(request_id)
        _ = self._start(self._client.flush())

    def _opened(self, event: ForwardingOpened) -> None:
        timer = self._pairs.pop(event.request_id, None)
        if timer is not None:
            timer.cancel()
        forwarding = Forwarding(event.port, _Side(self._client, event.forwarding))
        task = self._start(self._forward(event.forwarding, forwarding))
        self._forwardings[event.forwarding] = (forwarding, task)

    def _hand_on(self, event: ForwardingData | ForwardingEnded | ForwardingLost) -> None:
        known = self._forwardings.get(event.forwarding)
        if known is None:
            if isinstance(event, ForwardingData):
                self._client.machine.acknowledge(event.forwarding, len(event.payload))
            return
        forwarding, task = known
        match event:
            case ForwardingData():
                forwarding.arrived(event.payload)
            case ForwardingEnded():
                forwarding.ended()
            case ForwardingLost():
                # Also if it has not begun: then nothing of it would run.
                del self._forwardings[event.forwarding]
                task.cancel()

    async def _forward(self, number: int, forwarding: Forwarding) -> None:
        error: str | None = None
        try:
            error = await forwarding.run(self._target)
        finally:
            self._forwardings.pop(number, None)
            await self._client.finish(number, error)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            _log.error("a forwarded connection failed unexpectedly", exc_info=fault)
