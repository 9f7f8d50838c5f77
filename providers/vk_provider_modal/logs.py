"""A sandbox's output as lines: pieces put together, each line with the time of its first piece.

Modal keeps output by time. Following asks again from the newest moment on, and recognises what it
has seen. Fed by ``workspace``; feeds ``provider.read_logs`` and ``attaching``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from vk_provider.faults import InstanceNotFoundError, UnavailableError
from vk_provider.pods.types import LogLine, LogOptions
from vk_provider.streams import LONGEST_LINE_BYTES
from vk_provider_modal.facts import LogPiece
from vk_provider_modal.workspace import Workspace

MOST_TAIL = 20_000
FOLLOW_SECONDS = 1.0
AHEAD = timedelta(minutes=10)
"""Clocks differ, so the present is asked for with some of the future."""
LONGEST_RANGE = timedelta(days=2)
_PAUSES = (1.0, 2.0, 5.0)
_OUTPUTS = ("stdout", "stderr")


@dataclass(slots=True)
class Lines:
    """Puts the pieces of each stream together."""

    begun: dict[str, tuple[datetime, str]] = field(default_factory=dict)

    def feed(self, piece: LogPiece) -> Iterator[LogLine]:
        """The lines that a piece completes."""
        at, text = self.begun.pop(piece.source, (piece.timestamp, ""))
        *whole, rest = (text + piece.text).split("\n")
        for line in whole:
            yield LogLine(at, line.encode())
            at = piece.timestamp
        if len(rest) > LONGEST_LINE_BYTES:
            yield LogLine(at, rest.encode())
        elif rest:
            self.begun[piece.source] = (at, rest)

    def rest(self) -> Iterator[LogLine]:
        """What was begun and never ended."""
        for source, (at, text) in list(self.begun.items()):
            del self.begun[source]
            yield LogLine(at, text.encode())


@dataclass(slots=True)
class Seen:
    """The pieces of the newest moment, which a further question brings once more."""

    newest: datetime | None = None
    pieces: Counter[tuple[str, str]] = field(default_factory=Counter)
    _again: Counter[tuple[str, str]] = field(default_factory=Counter)

    def ask_again(self) -> None:
        """What is known by now comes once more."""
        self._again = self.pieces.copy()

    def is_new(self, piece: LogPiece) -> bool:
        """Whether a piece was not seen before; remembers it."""
        key = (piece.source, piece.text)
        if self.newest is not None and piece.timestamp < self.newest:
            return False
        if piece.timestamp == self.newest and self._again[key]:
            self._again[key] -= 1
            return False
        if piece.timestamp != self.newest:
            self.newest, self.pieces, self._again = piece.timestamp, Counter(), Counter()
        self.pieces[key] += 1
        return True


async def read_logs(
    workspace: Workspace, sandbox_id: str, options: LogOptions
) -> AsyncGenerator[LogLine, None]:
    """Lines of the container in order; with ``follow`` until it has ended and all is read."""
    lines = Lines()
    async with aclosing(new_pieces(workspace, sandbox_id, options, Seen())) as pieces:
        async for piece in pieces:
            for line in lines.feed(piece):
                yield line
    for line in lines.rest():
        yield line


async def new_pieces(
    workspace: Workspace, sandbox_id: str, options: LogOptions, seen: Seen
) -> AsyncGenerator[LogPiece, None]:
    """Output that was not seen before; with ``follow`` until the container has ended and all of
    it has been handed out."""
    failures, is_over = 0, False
    while not is_over:
        try:
            # Asked before the output, so that an end is believed only after all was read.
            is_over = not options.follow or await _has_ended(workspace, sandbox_id, seen)
            async with aclosing(_pieces(workspace, sandbox_id, options, seen)) as pieces:
                async for piece in pieces:
                    yield piece
            failures = 0
        except UnavailableError:
            if not options.follow or failures >= len(_PAUSES):
                raise
            is_over, failures = False, failures + 1
        if not is_over:
            await asyncio.sleep(_PAUSES[failures - 1] if failures else FOLLOW_SECONDS)


async def _has_ended(workspace: Workspace, sandbox_id: str, seen: Seen) -> bool:
    try:
        return bool((await workspace.result_of(sandbox_id)).status)
    except InstanceNotFoundError:
        # What was there and is forgotten has ended, too.
        if seen.newest is None:
            raise
        return True


async def _pieces(
    workspace: Workspace, sandbox_id: str, options: LogOptions, seen: Seen
) -> AsyncGenerator[LogPiece, None]:
    now = datetime.now(UTC)
    since = seen.newest or options.since
    tail = MOST_TAIL if options.tail_lines is None else min(options.tail_lines, MOST_TAIL)
    if since is not None:
        since = max(since, now - LONGEST_RANGE)
    elif tail == 0:
        # Nothing old is wanted, but what follows is.
        since = now
    seen.ask_again()
    found = workspace.log_pieces(sandbox_id, since, now + AHEAD, tail)
    try:
        async with aclosing(found) as pieces:
            async for piece in pieces:
                if piece.source in _OUTPUTS and seen.is_new(piece):
                    yield piece
    except InstanceNotFoundError:
        if seen.newest is None:
            raise
