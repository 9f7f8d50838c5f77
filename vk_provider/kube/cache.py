"""Our pods as the API server has them: the only copy of desired state.

Keyed by UID: a name that comes back with another UID is another pod. Mirror pods (of static pods)
are some kubelet's own affair and are left out.

Fed by ``kube.watch`` and by ``kube.writer`` (the answers to its PATCHes); feeds
``loops.pod_workers`` through its subscribers, and everybody who looks a pod up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import aclosing

from vk_provider.faults import KubeError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.watch import (
    Interrupted,
    Removed,
    Resumed,
    Synced,
    Upsert,
    WatchTimings,
    watch,
)
from vk_provider.pods.types import Json, PodUID

logger = logging.getLogger(__name__)

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"

PodCallback = Callable[[PodUID, Json | None], None]
"""Called with each new version of a pod, and with None when it is gone from the API."""


class PodCache:
    """The pods bound to one node, latest version by UID."""

    def __init__(
        self, client: KubeClient, node_name: str, *, timings: WatchTimings | None = None
    ) -> None:
        self.synced = asyncio.Event()
        """Set once a complete view was seen. Before that, absence means nothing."""
        self.fault: KubeError | None = None
        """Why the watch does not run at the moment; None while it does."""
        self._client = client
        self._node_name = node_name
        self._timings = timings
        self._pods: dict[PodUID, Json] = {}
        self._uids: dict[tuple[str, str], PodUID] = {}
        self._callbacks: list[PodCallback] = []

    def subscribe(self, callback: PodCallback) -> None:
        """Hear of every change from now on. The callback must not block."""
        self._callbacks.append(callback)

    def pods(self) -> Collection[Json]:
        """All pods; a snapshot, so it may be iterated over awaits."""
        return tuple(self._pods.values())

    def get(self, uid: PodUID) -> Json | None:
        """The latest version of a pod."""
        return self._pods.get(uid)

    def find(self, namespace: str, name: str) -> Json | None:
        """The pod that has this name now: the last one seen, if two UIDs share it."""
        uid = self._uids.get((namespace, name))
        return None if uid is None else self._pods.get(uid)

    def accept(self, pod: Json) -> None:
        """Take the answer to a PATCH, so that nobody waits for the watch to bring it.

        Only of a pod that is in the cache: the answer may arrive after the pod's last event.
        """
        if PodUID(pod["metadata"]["uid"]) in self._pods:
            self._upsert(pod)

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        selector = f"spec.nodeName={self._node_name}"
        changes = watch(self._client, paths.pods(), field_selector=selector, timings=self._timings)
        async with aclosing(changes) as events:
            async for event in events:
                match event:
                    case Upsert(pod):
                        self._upsert(pod)
                    case Removed(pod):
                        self._remove(PodUID(pod["metadata"]["uid"]))
                    case Synced(uids):
                        self._settle(uids)
                    case Interrupted(fault):
                        self._note(fault)
                    case Resumed():
                        self._note(None)

    def _upsert(self, pod: Json) -> None:
        metadata = pod["metadata"]
        if MIRROR_ANNOTATION in (metadata.get("annotations") or ()):
            return
        uid = PodUID(metadata["uid"])
        if not is_newer(pod, self._pods.get(uid)):
            return
        self._pods[uid] = pod
        name = (metadata["namespace"], metadata["name"])
        if is_newer(pod, self.find(*name)):
            self._uids[name] = uid
        self._tell(uid, pod)

    def _remove(self, uid: PodUID) -> None:
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        name = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if self._uids.get(name) == uid:
            del self._uids[name]
        self._tell(uid, None)

    def _settle(self, present: frozenset[str]) -> None:
        # Whatever was deleted while no watch was open has no event of its own.
        for uid in self._pods.keys() - present:
            self._remove(uid)
        self.synced.set()

    def _tell(self, uid: PodUID, pod: Json | None) -> None:
        for callback in self._callbacks:
            callback(uid, pod)

    def _note(self, fault: KubeError | None) -> None:
        if fault is not None and self.fault is None:
            logger.warning("pods can't be watched, retrying: %s", fault)
        elif fault is None and self.fault is not None:
            logger.info("pods are watched again")
        self.fault = fault


def is_newer(obj: Json, known: Json | None) -> bool:
    """Whether this version comes after the known one; versions that are no numbers always do."""
    if known is None:
        return True
    try:
        return int(obj["metadata"]["resourceVersion"]) > int(known["metadata"]["resourceVersion"])
    except (KeyError, ValueError):
        return True
