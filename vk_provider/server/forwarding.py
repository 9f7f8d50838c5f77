"""One forwarded connection: from its dialling to its end in both directions.

Each direction ends on its own (half-close). Fed by :mod:`.portforward_session` with what the client
sends; speaks to a provider's ``PortConnection``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from vk_provider.faults import NotSupportedError, ProviderError
from vk_provider.streams import CHUNK_BYTES, PortConnection


@dataclass(frozen=True, slots=True)
class Target:
    """The pod: how to dial a port, why a port is refused, and a kubelet's words for a failure."""

    open: Callable[[int], Awaitable[PortConnection]]
    refusal: Callable[[int], str | None]
    error: Callable[[int, str], str]


class ClientSide(Protocol):
    """The client's end of a forwarding."""

    half_closes: bool
    """Whether the client can learn that the port sends no more while it goes on sending."""

    async def taken(self, size: int) -> None:
        """So many of its bytes were handed on."""

    async def send(self, chunk: bytes) -> None:
        """Bytes for it; returns when there is room again."""

    async def send_end(self) -> None:
        """The port sends no more."""


class Forwarding:
    """What the client sent and nobody has taken yet, and the copying."""

    def __init__(self, port: int, client: ClientSide) -> None:
        self._port = port
        self._client = client
        self._chunks: deque[bytes] = deque()
        self._ended = False
        self._came = asyncio.Event()

    def arrived(self, chunk: bytes) -> None:
        """Bytes of the client."""
        self._chunks.append(chunk)
        self._came.set()

    def ended(self) -> None:
        """The client sends no more."""
        self._ended = True
        self._came.set()

    async def run(self, target: Target) -> str | None:
        """The whole life; what to tell the client if it failed."""
        refusal = target.refusal(self._port)
        if refusal is not None:
            return target.error(self._port, refusal)
        try:
            far = await target.open(self._port)
        except (ProviderError, NotSupportedError) as fault:
            return target.error(self._port, str(fault))
        try:
            # kubectl gives all its connections up at an error; a port that hangs up is none.
            with suppress(ProviderError):
                await self._copy(far)
        finally:
            await far.close()
        return None

    async def _copy(self, far: PortConnection) -> None:
        outward = asyncio.create_task(self._to_port(far))
        inward = asyncio.create_task(self._from_port(far))
        pending = {outward, inward}
        try:
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                if inward in done and not self._client.half_closes:
                    return
        finally:
            for task in (outward, inward):
                task.cancel()
            await asyncio.gather(outward, inward, return_exceptions=True)

    async def _to_port(self, far: PortConnection) -> None:
        while (chunk := await self._next()) is not None:
            for start in range(0, len(chunk), CHUNK_BYTES):
                await far.write(chunk[start : start + CHUNK_BYTES])
            await self._client.taken(len(chunk))
        await far.write_eof()

    async def _from_port(self, far: PortConnection) -> None:
        while chunk := await far.read():
            await self._client.send(chunk)
        await self._client.send_end()

    async def _next(self) -> bytes | None:
        while not self._chunks:
            if self._ended:
                return None
            self._came.clear()
            await self._came.wait()
        return self._chunks.popleft()
