"""Keeps instances in step with what may change while a pod lives: its references, its metadata.

Only for backends that hold copies of ConfigMaps, Secrets or labels (``SupportsRefresh``). Level-
triggered: what differs from what was last brought over is brought over, until it was. An instance
of an earlier process is brought up to date once, since nobody knows what it missed.
Fed by ``kube.references`` (changes) and the records of ``loops.pod_workers``; calls the provider.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from vk_provider.faults import KubeError, ProviderError
from vk_provider.loops.backend import Backend
from vk_provider.loops.pod_workers import PodWorkers
from vk_provider.loops.preparation import Preparer
from vk_provider.loops.shell import Shell
from vk_provider.pods import desired
from vk_provider.pods.reading import mapping, strings
from vk_provider.pods.record import Existence, Record
from vk_provider.pods.types import InstanceRef, Json, PodUID
from vk_provider.provider import SupportsRefresh

logger = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
SETTLE_SECONDS = 0.2
"""Changes come in groups: one refresh serves them all."""
_OURS = "vk-provider.dev/"

_Face = tuple[InstanceRef, Mapping[str, str], Mapping[str, str]]


class Refresher:
    """The instances of one node that follow their pods."""

    def __init__(
        self,
        workers: PodWorkers,
        preparer: Preparer,
        backends: Mapping[str, Backend],
        shell: Shell,
    ) -> None:
        self._workers = workers
        self._preparer = preparer
        self._backends = {
            name: backend
            for name, backend in backends.items()
            if isinstance(backend.provider, SupportsRefresh)
        }
        self._shell = shell
        self._started_at = shell.clock.now()
        self._brought: dict[PodUID, _Face] = {}
        self._stale: set[PodUID] = set()
        self._changed = asyncio.Event()

    def changed(self, uids: Iterable[PodUID]) -> None:
        """A ConfigMap or Secret of these pods has another content."""
        if self._backends:
            self._stale.update(uids)
            self._changed.set()

    async def run(self) -> None:
        """Look at every change, and now and then anyway, until cancelled."""
        while self._backends:
            await self._wait()
            if self._shell.may_act():
                await self.once()

    async def once(self) -> None:
        """Bring over everything that differs."""
        records = self._workers.records
        for gone in (self._brought.keys() | self._stale) - records.keys():
            self._brought.pop(gone, None)
            self._stale.discard(gone)
        for uid, record in list(records.items()):
            face = self._face(record)
            if face is not None and self._differs(record, face):
                await self._refresh(uid, record, face)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(SETTLE_SECONDS)
        self._changed.clear()

    def _face(self, record: Record) -> _Face | None:
        """What of a living instance's pod its backend holds a copy of."""
        pod = record.pod
        is_there = record.exists is Existence.PRESENT and record.ref is not None
        if pod is None or not is_there or record.backend not in self._backends:
            return None
        if record.deleted_at is not None or desired.is_terminal(pod):
            return None
        if desired.is_terminating(pod) or record.observation is None:
            return None
        metadata = mapping(pod, "metadata")
        assert record.ref is not None
        return record.ref, strings(metadata, "labels"), _theirs(metadata)

    def _differs(self, record: Record, face: _Face) -> bool:
        brought = self._brought.get(record.uid)
        if brought is None and self._is_fresh(record):
            brought = self._brought[record.uid] = face
        is_stale = record.uid in self._stale or self._preparer.is_due(record.uid)
        return brought != face or is_stale

    def _is_fresh(self, record: Record) -> bool:
        """Made by this process, in a call whose outcome is known: then it has all of it."""
        made: datetime | None = record.observation.created_at if record.observation else None
        return made is not None and made > self._started_at and not record.doubts

    async def _refresh(self, uid: PodUID, record: Record, face: _Face) -> None:
        backend = self._backends[record.backend or ""]
        assert isinstance(backend.provider, SupportsRefresh)
        # Taken back before the call: what changes during it is brought over again.
        self._stale.discard(uid)
        try:
            resolved = await self._preparer.resolved(uid, record.pod or {})
            if resolved is not None:
                limit = backend.provider.traits.create_timeout_seconds
                async with asyncio.timeout(limit):
                    await backend.provider.refresh_instance(face[0], resolved)
            self._brought[uid] = face
        except (ProviderError, KubeError, TimeoutError) as fault:
            self._stale.add(uid)
            logger.warning("backend %s: pod %s is not up to date: %s", backend.name, uid, fault)


def _theirs(metadata: Json) -> Mapping[str, Any]:
    """Annotations that are not our own: those change as we work."""
    found = strings(metadata, "annotations")
    return {name: value for name, value in found.items() if not name.startswith(_OURS)}
