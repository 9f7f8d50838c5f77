"""One collection of the API server, held as views: what a decision needs of each object, by UID.

Fed by ``kube.watch``; feeds ``controllers.cluster_view``. A version that looks the same to us is
no news, so status updates that nobody here cares about wake nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import aclosing
from typing import Generic, TypeVar

from vk_provider.faults import KubeError, KubeNotFoundError
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

logger = logging.getLogger(__name__)

V = TypeVar("V")


class WatchedViews(Generic[V]):
    """The objects at one path, read into views. ``read`` must not keep the object."""

    def __init__(
        self,
        client: KubeClient,
        path: str,
        read: Callable[[Json], V],
        on_change: Callable[[], None],
        timings: WatchTimings | None = None,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once a complete view was seen. Before that, absence means nothing."""
        self.answered = asyncio.Event()
        """Set once there was a complete view, or it is known why there is none."""
        self.fault: KubeError | None = None
        """Why the watch does not run at the moment; None while it does."""
        self.broken_at: float | None = None
        """When it stopped running, by the event loop's clock."""
        self._client = client
        self._path = path
        self._read = read
        self._on_change = on_change
        self._timings = timings
        self._views: dict[str, V] = {}

    def views(self) -> Collection[V]:
        """All of them, as far as they were seen."""
        return self._views.values()

    def get(self, uid: str) -> V | None:
        """The view of one object."""
        return self._views.get(uid)

    async def run(self) -> None:
        """Follow until cancelled; returns only if the collection itself is not (or no longer)
        served."""
        changes = watch(self._client, self._path, timings=self._timings)
        async with aclosing(changes) as events:
            async for event in events:
                if self._absorb(event):
                    self._on_change()
                if isinstance(self.fault, KubeNotFoundError):
                    return

    def _absorb(self, event: WatchEvent) -> bool:
        match event:
            case Upsert(obj):
                return self._upsert(obj)
            case Removed(obj):
                return self._views.pop(obj["metadata"]["uid"], None) is not None
            case Synced(uids):
                return self._settle(uids)
            case Resumed():
                return self._note(None)
            case Interrupted(fault):
                return self._note(fault)

    def _upsert(self, obj: Json) -> bool:
        uid, view = obj["metadata"]["uid"], self._read(obj)
        if self._views.get(uid) == view:
            return False
        self._views[uid] = view
        return True

    def _settle(self, present: frozenset[str]) -> bool:
        for uid in self._views.keys() - present:
            del self._views[uid]
        self._note(None)
        self.synced.set()
        self.answered.set()
        return True

    def _note(self, fault: KubeError | None) -> bool:
        """Whether the watch stopped or runs again."""
        if fault is not None:
            self.answered.set()
        if (fault is None) == (self.fault is None):
            self.fault = fault
            return False
        self.fault = fault
        self.broken_at = None if fault is None else asyncio.get_running_loop().time()
        if fault is not None:
            logger.warning("%s can't be watched, retrying: %s", self._path, fault)
        else:
            logger.info("%s is watched again", self._path)
        return True
