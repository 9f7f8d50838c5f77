"""A container's log on disk: two bounded generations, read by offset, so that nothing is doubled.

Each line is one record, ``MICROSECONDS STREAM TEXT``. Readers that follow wait for a signal and
read on; one that is too slow skips what has been dropped meanwhile, as with a rotated log.
Fed by :mod:`.process_output`; feeds ``read_logs``.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vk_provider.pods.types import LogLine, LogOptions
from vk_provider.streams import CHUNK_BYTES

LONGEST_LINE_BYTES = 1 << 20
"""A longer line is cut into several: an unfinished one is held in memory."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Signal:
    """Wakes everybody who waits for the next change."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def wake(self) -> None:
        """Something has changed."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
        """Return at the next change. Nothing gets lost between a look and a wait without await."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)


@dataclass(slots=True)
class _Generation:
    """One file, and where in the whole log it begins."""

    path: Path
    begins: int
    bytes: int = 0


class ContainerLog:
    """One container's lines. ``is_over`` once nothing more will be written."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path, self._half = path, max_bytes // 2
        self._unfinished = {b"o": b"", b"e": b""}
        self._generations = [_Generation(path, 0)]
        self._fd: int | None = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._changed = Signal()

    @property
    def is_over(self) -> bool:
        """Whether its container has ended and everything has been written."""
        return self._fd is None

    def write(self, stream: bytes, chunk: bytes) -> None:
        """Output of a container as it came; ``stream`` is ``o`` or ``e``."""
        *lines, rest = (self._unfinished[stream] + chunk).split(b"\n")
        while len(rest) > LONGEST_LINE_BYTES:
            lines.append(rest[:LONGEST_LINE_BYTES])
            rest = rest[LONGEST_LINE_BYTES:]
        self._unfinished[stream] = rest
        self._append(stream, lines)

    def close(self) -> None:
        """Write what has no newline yet, and let those who follow go."""
        if self._fd is None:
            return
        for stream, rest in self._unfinished.items():
            self._append(stream, [rest] if rest else [])
            self._unfinished[stream] = b""
        os.close(self._fd)
        self._fd = None
        self._changed.wake()

    def _append(self, stream: bytes, lines: list[bytes]) -> None:
        if not lines or self._fd is None:
            return
        head = b"%d %s " % (time.time_ns() // 1000, stream)
        records = b"".join(b"%s%s\n" % (head, line) for line in lines)
        latest = self._generations[-1]
        try:
            written = os.write(self._fd, records)
        except OSError:
            return  # a full disk costs lines, not the container
        if written < len(records):
            os.ftruncate(self._fd, latest.bytes)
            return
        latest.bytes += written
        if latest.bytes > self._half:
            self._rotate(self._fd)
        self._changed.wake()

    def _rotate(self, fd: int) -> None:
        os.close(fd)
        latest = self._generations[-1]
        latest.path = self._path.with_suffix(".1")
        self._path.rename(latest.path)
        self._generations = [latest, _Generation(self._path, latest.begins + latest.bytes)]
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def read(self, options: LogOptions) -> AsyncGenerator[LogLine, None]:
        """The lines that were asked for; with ``follow`` until all is over and read."""
        place, end = _Place(), self._end
        kept: deque[LogLine] = deque(maxlen=options.tail_lines)
        while place.offset < end:
            kept.extend(_wanted(self._batch(place, end), options))
            if options.tail_lines is None or place.offset >= end:
                for line in kept:
                    yield line
                kept.clear()
            await asyncio.sleep(0)
        while options.follow:
            is_over = self.is_over
            if place.offset < self._end:
                for line in self._batch(place, self._end):
                    yield line
                await asyncio.sleep(0)
            elif is_over:
                return
            else:
                await self._changed.wait()

    @property
    def _end(self) -> int:
        return self._generations[-1].begins + self._generations[-1].bytes

    def _batch(self, place: _Place, until: int) -> list[LogLine]:
        """The next few lines; moves ``place`` on."""
        latest = self._generations[-1]
        generation = latest if latest.begins <= place.offset else self._generations[0]
        if place.offset < generation.begins:
            # What stood there has been dropped.
            place.offset, place.text = generation.begins, b""
        if place.offset >= until:
            return []
        begins = place.offset - generation.begins
        chunk = _read(generation.path, begins, until - place.offset)
        if not chunk:
            place.offset = until  # its instance is gone
        place.offset += len(chunk)
        *records, place.text = (place.text + chunk).split(b"\n")
        return [_line(record) for record in records]


@dataclass(slots=True)
class _Place:
    """How far a reader is, and the beginning of a record whose end it has not read yet."""

    offset: int = 0
    text: bytes = b""


def _line(record: bytes) -> LogLine:
    micros, _stream, text = record.split(b" ", 2)
    return LogLine(_EPOCH + int(micros) * _MICROSECOND, text)


def _wanted(lines: list[LogLine], options: LogOptions) -> Iterator[LogLine]:
    return (each for each in lines if options.since is None or each.timestamp >= options.since)


def _read(path: Path, offset: int, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(min(limit, CHUNK_BYTES))
    except FileNotFoundError:
        return b""
