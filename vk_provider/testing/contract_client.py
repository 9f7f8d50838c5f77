"""A client of exec and attach for tests: it types, listens, and can be slow.

Fed by tests; implements :class:`vk_provider.streams.ContainerIO`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from vk_provider.streams import TerminalSize

_END = b""
_DEADLINE_SECONDS = 15.0


class ScriptedClient:
    """The client's side of an exec or attach. What came stands in ``stdout`` and ``stderr``."""

    def __init__(self, stdin: bytes | None = None, sizes: Sequence[TerminalSize] = ()) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.largest = 0
        self._typed: asyncio.Queue[bytes] = asyncio.Queue()
        self._sizes: asyncio.Queue[TerminalSize] = asyncio.Queue()
        self._came = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        for size in sizes:
            self.resize(size)
        if stdin is not None:
            self.type(stdin)
            self.half_close()

    def type(self, text: bytes, chunk_bytes: int = 64 * 1024) -> None:
        """Send input."""
        for begin in range(0, len(text), chunk_bytes):
            self._typed.put_nowait(text[begin : begin + chunk_bytes])

    def half_close(self) -> None:
        """No more input; output goes on."""
        self._typed.put_nowait(_END)

    def resize(self, size: TerminalSize) -> None:
        """Give the terminal another size."""
        self._sizes.put_nowait(size)

    def stall(self) -> None:
        """Take no more output until :meth:`go_on`."""
        self._room.clear()

    def go_on(self) -> None:
        """Take output again."""
        self._room.set()

    async def stdout_has(self, text: bytes) -> None:
        """Return once the output holds ``text``; raises ``TimeoutError`` after a while."""
        async with asyncio.timeout(_DEADLINE_SECONDS):
            while text not in self.stdout:
                self._came.clear()
                await self._came.wait()

    async def stdin(self) -> AsyncIterator[bytes]:
        """What was typed."""
        while chunk := await self._typed.get():
            yield chunk

    async def write_stdout(self, chunk: bytes) -> None:
        """Output."""
        await self._take(self.stdout, chunk)

    async def write_stderr(self, chunk: bytes) -> None:
        """Error output."""
        await self._take(self.stderr, chunk)

    async def resizes(self) -> AsyncIterator[TerminalSize]:
        """The sizes that were given."""
        while True:
            yield await self._sizes.get()

    async def _take(self, sink: bytearray, chunk: bytes) -> None:
        await self._room.wait()
        self.largest = max(self.largest, len(chunk))
        sink += chunk
        self._came.set()
