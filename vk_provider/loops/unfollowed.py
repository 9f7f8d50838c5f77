"""Tells people when they change a running pod and its backend can't follow: one Event per change.

An image, or resources: everything else that the API server lets change is the core's own business
(deadlines, labels in files that are read anew) or means nothing to an instance that is there.
Fed by ``kube.cache``; its Events go to ``kube.events``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vk_provider.loops.backend import Backend
from vk_provider.loops.pod_workers import PodWorkers
from vk_provider.pods import updates
from vk_provider.pods.actions import CreateInstance
from vk_provider.pods.events import EventReason
from vk_provider.pods.reading import mapping
from vk_provider.pods.slots import Record
from vk_provider.pods.types import Json, PodUID

Emit = Callable[[Json, str, str, str], None]
_REMEDY = "delete the pod to have it made anew"


class Unfollowed:
    """The pods of a node, as each was last seen."""

    def __init__(self, workers: PodWorkers, backends: Mapping[str, Backend], emit: Emit) -> None:
        self._workers = workers
        self._backends = backends
        self._emit = emit
        self._specs: dict[PodUID, Json] = {}

    def pod_changed(self, uid: PodUID, pod: Json | None) -> None:
        """The pod cache has a new version, or none any more."""
        if pod is None:
            self._specs.pop(uid, None)
            return
        now = mapping(pod, "spec")
        before = self._specs.get(uid, now)
        self._specs[uid] = now
        backend = self._holder(self._workers.records.get(uid))
        changes = updates.in_vain(before, now) if backend is not None else []
        if backend is not None and changes:
            words = "; ".join(changes)
            message = f"{words}: backend {backend.name} can't change a running instance; {_REMEDY}"
            self._emit(pod, "Warning", EventReason.UPDATE_IGNORED, message)

    def _holder(self, record: Record | None) -> Backend | None:
        """The backend that has, or is just making, its instance, and does not follow."""
        if record is None:
            return None
        making = record.in_flight if isinstance(record.in_flight, CreateInstance) else None
        is_there = making is not None or record.may_exist
        name = making.candidate.backend if making is not None else record.backend
        backend = self._backends.get(name or "") if is_there else None
        if backend is None or backend.provider.traits.follows_updates:
            return None
        return backend
