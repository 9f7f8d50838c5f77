"""One end of a pipe, terminal or socket, read and written when somebody asks for it.

Nothing is read ahead and nothing is queued: what the reader does not take stays in the kernel, and
the process on the other side stops by itself when that is full.
Fed by descriptors; feeds exec sessions, attached stdin and port connections.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import struct
import termios
from collections.abc import Callable

from vk_provider.streams import CHUNK_BYTES, TerminalSize


class Pipe:
    """A descriptor of ours, which is closed by :meth:`close`."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.is_open = True
        self._is_last = False
        self._writing = asyncio.Lock()
        self._waiting: dict[asyncio.Future[None], Callable[[int], object]] = {}

    async def read(self) -> bytes:
        """Up to CHUNK_BYTES; empty at the end. Raises ``OSError``."""
        waited = False
        while self.is_open:
            try:
                chunk = read_now(self.fd)
            except BlockingIOError:
                if self._is_last:
                    return b""
                await self._until_readable()
                waited = True
                continue
            if not waited:
                # A source that is always ready must not keep the loop from everybody else.
                await asyncio.sleep(0)
            return chunk
        return b""

    async def write(self, chunk: bytes) -> None:
        """Write all of it. Raises ``BrokenPipeError`` when nobody reads any more."""
        rest = memoryview(chunk)
        async with self._writing:
            while rest:
                if not self.is_open:
                    raise BrokenPipeError(errno.EPIPE, "closed on our side")
                try:
                    rest = rest[os.write(self.fd, rest) :]
                except BlockingIOError:
                    await self._until_writable()

    def expect_no_more(self) -> None:
        """The writer has ended: what can't be read at once will not come."""
        self._is_last = True
        for waiter in self._waiting:
            _wake(waiter)

    def close(self) -> None:
        """Close it, and let those go who wait for it. Idempotent."""
        if not self.is_open:
            return
        self.is_open = False
        for waiter, forget in self._waiting.items():
            forget(self.fd)
            _wake(waiter)
        os.close(self.fd)

    async def _until_readable(self) -> None:
        loop = asyncio.get_running_loop()
        await self._until(loop.add_reader, loop.remove_reader)

    async def _until_writable(self) -> None:
        loop = asyncio.get_running_loop()
        await self._until(loop.add_writer, loop.remove_writer)

    async def _until(self, add: Callable[..., object], forget: Callable[[int], object]) -> None:
        ready = asyncio.get_running_loop().create_future()
        self._waiting[ready] = forget
        add(self.fd, _wake, ready)
        try:
            await ready
        finally:
            del self._waiting[ready]
            if self.is_open:
                forget(self.fd)


def read_now(fd: int) -> bytes:
    """What can be read at once; empty at the end. Raises ``BlockingIOError`` and ``OSError``."""
    try:
        return os.read(fd, CHUNK_BYTES)
    except OSError as error:
        # How a terminal says that its last process has gone.
        if error.errno == errno.EIO:
            return b""
        raise


def resize(fd: int, size: TerminalSize) -> None:
    """Tell a terminal its size; its foreground process group gets SIGWINCH."""
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size.height, size.width, 0, 0))


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
