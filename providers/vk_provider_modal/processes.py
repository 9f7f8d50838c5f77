"""A command that runs in a sandbox, as the SDK hands it out: its streams as bytes.

Fed by ``client``; feeds ``streams``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Any


class Process:
    """A command that runs in a sandbox, its streams as bytes."""

    def __init__(self, started: Any, faults: Callable[[], AbstractContextManager[None]]) -> None:
        self._started = started
        self._faults = faults

    async def stdout(self) -> AsyncIterator[bytes]:
        """What it prints, as it comes."""
        with self._faults():
            async for chunk in self._started.stdout:
                yield chunk

    async def stderr(self) -> AsyncIterator[bytes]:
        """What it complains about, as it comes."""
        with self._faults():
            async for chunk in self._started.stderr:
                yield chunk

    async def write(self, chunk: bytes) -> None:
        """Feed it; returns when the service has taken it."""
        with self._faults():
            self._started.stdin.write(chunk)
            await self._started.stdin.drain.aio()

    async def write_eof(self) -> None:
        """Close its standard input."""
        with self._faults():
            self._started.stdin.write_eof()
            await self._started.stdin.drain.aio()

    async def wait(self) -> int:
        """Its exit code, 128 + N for a signal N."""
        with self._faults():
            return int(await self._started.wait.aio())
