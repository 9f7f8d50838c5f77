"""A handful of objects followed by a watch of their own, started and stopped on demand.

Fed by ``kube.watch``; feeds ``kube.references`` and ``kube.services``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable
from contextlib import aclosing
from typing import Generic, TypeVar

from vk_provider.faults import ForbiddenError, KubeError, KubeUnavailableError
from vk_provider.kube.cache import is_newer
from vk_provider.kube.client import KubeClient
from vk_provider.kube.watch import (
    Interrupted,
    Removed,
    Resumed,
    Synced,
    Upsert,
    WatchEvent,
    WatchTimings,
    watch,
)
from vk_provider.pods.types import Json

FIRST_ANSWER_SECONDS = 10.0

K = TypeVar("K", bound=Hashable)


class Watched:
    """The objects at one path (and of one name, if one is given)."""

    def __init__(
        self,
        client: KubeClient,
        path: str,
        name: str | None = None,
        *,
        on_change: Callable[[], None] = lambda: None,
        timings: WatchTimings | None = None,
    ) -> None:
        self.answered = asyncio.Event()
        """Set once it is known what is there, or that we may not know."""
        self.fault: KubeError | None = None
        """Why nothing can be seen at the moment."""
        self._client = client
        self._path = path
        self._selector = None if name is None else f"metadata.name={name}"
        self._on_change = on_change
        self._timings = timings
        self._objects: dict[str, Json] = {}

    def objects(self) -> Collection[Json]:
        """What is there, as far as it was seen."""
        return tuple(self._objects.values())

    async def wait(self, seconds: float = FIRST_ANSWER_SECONDS) -> None:
        """Until the first answer. An API server that gives none is a fault, not an absence."""
        try:
            async with asyncio.timeout(seconds):
                await self.answered.wait()
        except TimeoutError as error:
            cause = self.fault or f"no answer within {seconds:.0f} s"
            raise KubeUnavailableError(f"watch of {self._path}: {cause}") from error

    async def run(self) -> None:
        """Follow until cancelled."""
        changes = watch(
            self._client, self._path, field_selector=self._selector, timings=self._timings
        )
        async with aclosing(changes) as events:
            async for event in events:
                if self._absorb(event):
                    self._on_change()

    def _absorb(self, event: WatchEvent) -> bool:
        match event:
            case Upsert(obj):
                return self._upsert(obj)
            case Removed(obj):
                return self._objects.pop(obj["metadata"]["uid"], None) is not None
            case Synced(uids):
                return self._settle(uids)
            case Resumed():
                self.fault = None
                return False
            case Interrupted(fault):
                return self._note(fault)

    def _upsert(self, obj: Json) -> bool:
        uid = obj["metadata"]["uid"]
        if not is_newer(obj, self._objects.get(uid)):
            return False
        self._objects[uid] = obj
        return True

    def _settle(self, present: frozenset[str]) -> bool:
        gone = self._objects.keys() - present
        for uid in gone:
            del self._objects[uid]
        self.fault = None
        self.answered.set()
        return bool(gone)

    def _note(self, fault: KubeError) -> bool:
        news = type(fault) is not type(self.fault)
        self.fault = fault
        if isinstance(fault, ForbiddenError):
            # Nobody may wait for a namespace that was not granted; what was seen before stays.
            self.answered.set()
        return news and isinstance(fault, ForbiddenError)


class WatchedSet(Generic[K]):
    """Watches by key, each in a task of its own while :meth:`run` runs."""

    def __init__(self, make: Callable[[K], Watched]) -> None:
        self._make = make
        self._watched: dict[K, Watched] = {}
        self._tasks: dict[K, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    def find(self, key: K) -> Watched | None:
        """The watch for this key, if there is one."""
        return self._watched.get(key)

    def start(self, key: K) -> Watched:
        """The watch for this key, begun if there is none."""
        watched = self._watched.get(key)
        if watched is None:
            watched = self._watched[key] = self._make(key)
            self._begin(key, watched)
        return watched

    def stop(self, key: K) -> None:
        """End the watch for this key and forget what it saw."""
        self._watched.pop(key, None)
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()

    async def run(self) -> None:
        """Run all watches, those begun before and those to come, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for key, watched in self._watched.items():
                    self._begin(key, watched)
                await asyncio.Event().wait()
        finally:
            self._group = None
            self._tasks.clear()

    def _begin(self, key: K, watched: Watched) -> None:
        if self._group is not None:
            self._tasks[key] = self._group.create_task(watched.run(), name=f"watch {key}")
