"""Pushes what changes in the fake service to whoever watches, without a timer per instance.

Fed by :mod:`.fake_service`; feeds ``watch_instances`` and followed logs.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

SOONEST_SECONDS = 0.001


class Watcher:
    """One watch: the ids that changed, and the moments at which known ones will change."""

    def __init__(self, cluster_id: str | None) -> None:
        self.cluster_id = cluster_id
        self._changed: dict[str, None] = {}
        self._due: list[tuple[float, str]] = []
        self._woken = asyncio.Event()

    def tell(self, ref: str, changes_at: Iterable[float] = ()) -> None:
        """An instance has changed, and will again at these moments."""
        self._changed[ref] = None
        for at in changes_at:
            heapq.heappush(self._due, (at, ref))
        self._woken.set()

    def wake(self) -> None:
        """Make the watch look again, for instance because the clock was moved."""
        self._woken.set()

    def take(self, now: float) -> tuple[str, ...]:
        """What has changed since the last call."""
        while self._due and self._due[0][0] <= now:
            self._changed[heapq.heappop(self._due)[1]] = None
        taken = tuple(self._changed)
        self._changed.clear()
        return taken

    async def wait(self, now: float, until: float | None = None) -> None:
        """Return when something may have changed, or at ``until`` at the latest."""
        moments = [at for at, _ in self._due[:1]] + ([] if until is None else [until])
        # A loop's clock has a resolution: it could wake a hair too early, again and again.
        seconds = max(SOONEST_SECONDS, min(moments) - now) if moments else None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()


class Watchers:
    """All open watches of one service."""

    def __init__(self) -> None:
        self._open: list[Watcher] = []

    @contextmanager
    def open(self, cluster_id: str | None = None) -> Iterator[Watcher]:
        """A watch of one cluster's instances, or of everybody's, for as long as the block runs."""
        watcher = Watcher(cluster_id)
        self._open.append(watcher)
        try:
            yield watcher
        finally:
            self._open.remove(watcher)

    def tell(self, ref: str, cluster_id: str | None, changes_at: Iterable[float] = ()) -> None:
        """An instance has changed: tell whom it concerns."""
        for watcher in self._open:
            if watcher.cluster_id in (None, cluster_id):
                watcher.tell(ref, changes_at)

    def wake(self) -> None:
        """Make every watch look again."""
        for watcher in self._open:
            watcher.wake()
