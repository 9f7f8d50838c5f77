"""Keeps instances in step with what may change while a pod lives: its references, its tokens, its
metadata, and what of its spec the API server lets change.

Only for backends that hold copies of it (``SupportsRefresh``). Level-triggered: what differs from
what was last brought over is brought over, until it was. An instance of an earlier process is
brought up to date once, since nobody knows what it missed.
Fed by ``kube.references`` and ``kube.cache`` (changes), and by the records of
``loops.pod_workers``; calls the provider.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from vk_provider.faults import (
    DeniedError,
    KubeError,
    ProviderError,
    RejectedError,
    UnsupportedFieldsError,
)
from vk_provider.kube.references import NotWantedError
from vk_provider.loops.backend import Backend
from vk_provider.loops.pod_workers import PodWorkers
from vk_provider.loops.preparation import Preparer
from vk_provider.loops.shell import Shell
from vk_provider.loops.unfollowed import Emit
from vk_provider.pods import desired, updates
from vk_provider.pods.events import EventReason
from vk_provider.pods.masking import Veiled
from vk_provider.pods.slots import Existence, Record
from vk_provider.pods.types import InstanceRef, Json, PodUID
from vk_provider.provider import SupportsRefresh

logger = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
SETTLE_SECONDS = 0.2
"""Changes come in groups: one refresh serves them all."""

_Face = tuple[InstanceRef, updates.Face]


class Refresher:
    """The instances of one node that follow their pods."""

    def __init__(
        self,
        workers: PodWorkers,
        preparer: Preparer,
        backends: Mapping[str, Backend],
        shell: Shell,
        emit: Emit,
    ) -> None:
        self._workers = workers
        self._preparer = preparer
        self._backends = {
            name: backend
            for name, backend in backends.items()
            if isinstance(backend.provider, SupportsRefresh)
        }
        self._shell = shell
        self._emit = emit
        self._made: dict[PodUID, updates.Face] = {}
        """What an instance was made from, in a call whose outcome is known."""
        self._brought: dict[PodUID, _Face] = {}
        self._stale: set[PodUID] = set()
        self._said: dict[PodUID, str] = {}
        """Why a pod is not up to date, as it was last told."""
        self._changed = asyncio.Event()

    def changed(self, uids: Iterable[PodUID]) -> None:
        """A ConfigMap or Secret of these pods has another content."""
        if self._backends:
            self._stale.update(uids)
            self._changed.set()

    def made(self, uid: PodUID, pod: Json) -> None:
        """This process has made the pod's instance, from this version of the pod."""
        if self._backends:
            self._made[uid] = updates.face(pod)

    def pod_changed(self, uid: PodUID, pod: Json | None) -> None:
        """The pod cache has a new version: look at once if there is something to bring over."""
        brought = self._brought.get(uid)
        if pod is not None and brought is not None and brought[1] != updates.face(pod):
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
        known = self._brought.keys() | self._made.keys() | self._stale
        for gone in known - records.keys():
            self._brought.pop(gone, None)
            self._made.pop(gone, None)
            self._stale.discard(gone)
            self._said.pop(gone, None)
        for uid in list(records):
            record = records.get(uid)  # it may have gone while another one was brought over
            face = self._face(record) if record is not None else None
            if record is not None and face is not None and self._differs(record, face):
                await self._refresh(uid, record, face)
                if uid not in records:
                    self._preparer.release(uid)

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
        assert record.ref is not None
        return record.ref, updates.face(pod)

    def _differs(self, record: Record, face: _Face) -> bool:
        brought, made = self._brought.get(record.uid), self._made.pop(record.uid, None)
        if brought is None and made is not None and not record.doubts:
            brought = self._brought[record.uid] = face[0], made
        is_stale = record.uid in self._stale or self._preparer.is_due(record.uid)
        return brought != face or is_stale

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
                    with Veiled(resolved.secret_values):
                        await backend.provider.refresh_instance(face[0], resolved)
            self._brought[uid] = face
            self._said.pop(uid, None)
        except NotWantedError:
            logger.debug("pod %s went while it was brought up to date", uid)
        except (RejectedError, UnsupportedFieldsError) as fault:
            # It would be refused again; the next change may not be.
            self._brought[uid] = face
            self._tell(record, backend, fault)
        except (ProviderError, KubeError, TimeoutError) as fault:
            self._stale.add(uid)
            if self._is_news(uid, str(fault)):
                logger.warning("backend %s: pod %s is not up to date: %s", backend.name, uid, fault)
                if isinstance(fault, DeniedError):
                    self._tell(record, backend, fault)

    def _is_news(self, uid: PodUID, words: str) -> bool:
        """It is tried again and again, and told once."""
        before, self._said[uid] = self._said.get(uid), words
        return before != words

    def _tell(self, record: Record, backend: Backend, fault: ProviderError) -> None:
        message = f"backend {backend.name} refuses a change of a running pod: {fault}"
        self._emit(record.pod or {}, "Warning", EventReason.UPDATE_IGNORED, message)
