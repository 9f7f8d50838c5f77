"""What a container writes: into its log, and to everybody who is attached from then on.

Read by callbacks of the loop, without a task. A slow attacher stops the reading, and so in the end
the process itself: nothing is dropped and no more than a few chunks are held.
Fed by a container's descriptors; feeds :mod:`.process_log` and attach sessions.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from vk_provider.streams import CHUNK_BYTES
from vk_provider.testing.process_log import ContainerLog, Signal
from vk_provider.testing.process_pipe import read_now

HELD_BYTES = 4 * CHUNK_BYTES
"""How far an attacher may fall behind before the container is made to wait."""

_LAST_READS = 16
_HANG_UP_SECONDS = 1.0

STDOUT, STDERR = b"o", b"e"


class Attacher:
    """One listener: what it has not taken yet."""

    def __init__(self) -> None:
        self.chunks: deque[tuple[bytes, bytes]] = deque()
        self.bytes = 0
        self.is_over = False
        self._changed = Signal()

    def put(self, stream: bytes, chunk: bytes) -> None:
        """A chunk for it."""
        self.chunks.append((stream, chunk))
        self.bytes += len(chunk)
        self._changed.wake()

    def end(self) -> None:
        """Nothing more will come."""
        self.is_over = True
        self._changed.wake()

    async def take(self) -> tuple[bytes, bytes] | None:
        """The next chunk and its stream, None after the last."""
        while not self.chunks:
            if self.is_over:
                return None
            await self._changed.wait()
        stream, chunk = self.chunks.popleft()
        self.bytes -= len(chunk)
        return stream, chunk


class Output:
    """The output of one container, from its start to its end."""

    def __init__(self, log: ContainerLog) -> None:
        self.log = log
        self._loop = asyncio.get_running_loop()
        self._sources: dict[int, bytes] = {}
        self._attachers: set[Attacher] = set()
        self._is_paused = False
        self._hang_up: asyncio.TimerHandle | None = None

    def connect(self, fd: int, stream: bytes) -> None:
        """Read a descriptor, which is ours from now on, to its end."""
        os.set_blocking(fd, False)
        self._sources[fd] = stream
        self._loop.add_reader(fd, self._read, fd)

    @contextmanager
    def attached(self) -> Iterator[Attacher]:
        """A listener to what is written while the block runs."""
        attacher = Attacher()
        if self.log.is_over:
            attacher.end()
        self._attachers.add(attacher)
        try:
            yield attacher
        finally:
            self._attachers.discard(attacher)
            self.resume()

    def resume(self) -> None:
        """Read on, if all attachers have room again."""
        if self._is_paused and not self._is_full():
            self._is_paused = False
            for fd in self._sources:
                self._loop.add_reader(fd, self._read, fd)

    def finish(self, is_terminal: bool) -> None:
        """The process has ended: read what it left, and end, whoever still holds the other end.

        A terminal delivers its last output a moment later, and hangs up by itself.
        """
        for fd in list(self._sources):
            for _ in range(_LAST_READS):
                if fd not in self._sources or not self._read(fd):
                    break
        if is_terminal and self._sources:
            self._hang_up = self._loop.call_later(_HANG_UP_SECONDS, self.close)
        else:
            self.close()

    def close(self) -> None:
        """End it now. Idempotent."""
        if self._hang_up is not None:
            self._hang_up.cancel()
        for fd in list(self._sources):
            self._forget(fd)
        self.log.close()
        for attacher in self._attachers:
            attacher.end()

    def _read(self, fd: int) -> bool:
        """Read once; whether there may be more."""
        try:
            chunk = read_now(fd)
        except BlockingIOError:
            return False
        if not chunk:
            self._forget(fd)
            if self._hang_up is not None and not self._sources:
                self.close()
            return False
        stream = self._sources[fd]
        self.log.write(stream, chunk)
        for attacher in self._attachers:
            attacher.put(stream, chunk)
        if not self._is_paused and self._is_full():
            self._is_paused = True
            for source in self._sources:
                self._loop.remove_reader(source)
        return True

    def _is_full(self) -> bool:
        return any(each.bytes >= HELD_BYTES for each in self._attachers)

    def _forget(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        del self._sources[fd]
        os.close(fd)
