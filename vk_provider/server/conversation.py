"""Between a pure machine and a wire: what arrives is fed, what the machine says is sent, in order.

Reading stops while the machine holds as much as it may; whoever consumes calls ``ease``.
Fed by a wire; feeds the core of exec and attach (:mod:`.remote_command`) and port-forward.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sized
from typing import Generic, Protocol, TypeVar

from vk_provider.server.wires import Wire

_log = logging.getLogger(__name__)

In = TypeVar("In")
In_contra = TypeVar("In_contra", contravariant=True)
Out = TypeVar("Out", bound=Sized)
Out_co = TypeVar("Out_co", bound=Sized, covariant=True)
Event = TypeVar("Event")


class Machine(Protocol[In_contra, Out_co, Event]):
    """The part of a pure protocol that every transport has."""

    @property
    def paused(self) -> bool:
        """Whether nothing more should be fed for now."""

    def begin(self) -> list[Event]:
        """The first events."""

    def feed(self, chunk: In_contra) -> list[Event]:
        """What a chunk means."""

    def feed_eof(self) -> list[Event]:
        """The wire has ended."""

    def take_output(self) -> Out_co:
        """What is to be sent now."""


class Conversation(Generic[In, Out, Event]):
    """One client. ``obey`` gets every event, in order, and returns at once. A client that is not
    read is looked after every ``look_seconds``."""

    def __init__(
        self,
        machine: Machine[In, Out, Event],
        wire: Wire[In, Out],
        obey: Callable[[Event], None],
        look_seconds: float = 5.0,
    ) -> None:
        self._machine = machine
        self._wire = wire
        self._obey = obey
        self._look_seconds = look_seconds
        self._eased = asyncio.Event()
        self._sending = asyncio.Lock()
        self._over = False
        self._clock = asyncio.get_running_loop().time
        self._active_at = self._clock()

    def over(self) -> None:
        """The client is gone: nothing is read after what is being read now."""
        self._over = True

    def part(self) -> None:
        """Nothing is read any more. Who obeys and the conversation know each other: kept together,
        the connection's buffers would stay until a garbage collection, which is rare."""
        self._obey = _ignore

    def ease(self) -> None:
        """Something was consumed: there may be reason to read on."""
        self._eased.set()

    def idle_seconds(self) -> float:
        """For how long nothing has passed in either direction."""
        return self._clock() - self._active_at

    async def read(self) -> None:
        """Until the client is gone."""
        for event in self._machine.begin():
            self._obey(event)
        await self.flush()
        while not self._over:
            chunk = await self._wire.receive() if await self._may_read() else None
            self._active_at = self._clock()
            ended = chunk is None
            events = self._machine.feed_eof() if chunk is None else self._machine.feed(chunk)
            for event in events:
                self._obey(event)
            await self.flush()
            if ended:
                return

    async def _may_read(self) -> bool:
        """Wait while nobody takes what there is; False if the client left meanwhile."""
        while self._machine.paused:
            self._eased.clear()
            try:
                async with asyncio.timeout(self._look_seconds):
                    await self._eased.wait()
            except TimeoutError:
                if self._wire.is_gone():
                    return False
        return True

    async def flush(self) -> None:
        """Send what the machine has to say; returns when there is room again."""
        output = self._machine.take_output()
        if output:
            # First come, first served: so the order is that of the machine.
            async with self._sending:
                self._active_at = self._clock()
                await self._wire.send(output)


def _ignore(event: object) -> None:
    """What is done about an event once nobody obeys any more."""


async def end_reading(reading: asyncio.Task[None]) -> None:
    """Stop the task of ``read``; what went wrong in it is our own fault, so it is logged."""
    reading.cancel()
    await asyncio.wait({reading})
    if not reading.cancelled() and (fault := reading.exception()) is not None:
        _log.error("a stream of a client could not be read", exc_info=fault)
