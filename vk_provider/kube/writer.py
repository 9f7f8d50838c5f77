"""Sends what was decided about pods: status PATCHes and the last DELETE, never a GET.

The PATCH itself is made by a pure function of ``pods.status``; here it gets its precondition, its
turn (so that a burst of pods shares the connections fairly), and its answer goes to the cache.
What still waits for its turn when another replica may lead is not sent: it is old by then.

Fed by ``loops.pod_workers``; feeds ``kube.cache``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from vk_provider.faults import (
    ConflictError,
    InvalidObjectError,
    KubeError,
    KubeNotFoundError,
    KubeUnavailableError,
)
from vk_provider.kube import paths
from vk_provider.kube.cache import PodCache
from vk_provider.kube.client import KubeClient
from vk_provider.pods.types import Json

MOST_CONFLICTS = 4


class StatusWriter:
    """Writes about pods, so many at a time, first come first served."""

    def __init__(
        self,
        client: KubeClient,
        cache: PodCache,
        concurrency: int = 16,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self._may_write = may_write
        self._client = client
        self._cache = cache
        # A semaphore wakes its waiters in order: no pod is starved by the others.
        self._turns = asyncio.Semaphore(concurrency)

    async def write(self, pod: Json, patch: Mapping[str, Any]) -> Json | None:
        """PATCH ``pods/status`` of exactly this pod; None means that this pod is gone.

        Strategic merge. The patch may carry ``metadata.annotations`` beside ``status``.
        """
        metadata = pod["metadata"]
        path = paths.pod_status(metadata["namespace"], metadata["name"])
        body = {**patch, "metadata": {**patch.get("metadata", {}), "uid": metadata["uid"]}}
        async with self._turn():
            try:
                answer = await self._patch(path, body)
            except KubeNotFoundError:
                return None
            except (ConflictError, InvalidObjectError) as error:
                if is_about_uid(error):
                    return None
                raise
        self._cache.accept(answer)
        return answer

    async def remove(self, pod: Json) -> None:
        """DELETE exactly this pod from the API for good; already gone is success."""
        metadata = pod["metadata"]
        path = paths.pod(metadata["namespace"], metadata["name"])
        async with self._turn():
            try:
                await self._client.delete(path, uid=metadata["uid"], grace_seconds=0)
            except KubeNotFoundError:
                return
            except ConflictError as error:
                if not is_about_uid(error):
                    raise

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        async with self._turns:
            if not self._may_write():
                raise KubeUnavailableError("not sent: another replica may lead now")
            yield

    async def _patch(self, path: str, body: Json) -> Json:
        # The API server retries a merge by itself; a conflict that gets out of it met many others.
        for _ in range(MOST_CONFLICTS):
            try:
                return await self._client.patch(path, body)
            except ConflictError as error:
                if is_about_uid(error):
                    raise
                await asyncio.sleep(0.05)
        return await self._client.patch(path, body)


UID_MISMATCHES = ("metadata.uid", "UID in precondition", "UID in the precondition")
"""How API servers put it: 422 for a PATCH, 409 for a DELETE (two wordings)."""


def is_about_uid(fault: KubeError) -> bool:
    """Whether the name now belongs to another object, so that the one meant is gone."""
    return any(words in str(fault) for words in UID_MISMATCHES)
