"""What the kubelet server may know of pods: a view over the cache, the records and kept logs.

Fed by the loops of one node; read by ``server``, which need not know them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vk_provider.kube.cache import PodCache
from vk_provider.loops.backend import Backend
from vk_provider.loops.kept_logs import KeptLogs
from vk_provider.loops.pod_workers import PodWorkers
from vk_provider.pods import desired
from vk_provider.pods.types import InstancePhase, Json, PodUID
from vk_provider.provider import Provider
from vk_provider.server.lookup import ServedPod


class Lookup:
    """Implements ``server.lookup.PodLookup``; answers from memory."""

    def __init__(
        self,
        cache: PodCache,
        workers: PodWorkers,
        backends: Mapping[str, Backend],
        kept_logs: KeptLogs,
    ) -> None:
        self._cache = cache
        self._workers = workers
        self._backends = backends
        self._kept_logs = kept_logs

    def pods(self) -> Sequence[Json]:
        """Every pod bound to the node."""
        return tuple(self._cache.pods())

    def running_pods(self) -> Sequence[Json]:
        """The pods that have a running instance."""
        return tuple(pod for pod in self._cache.pods() if self._runs(pod))

    def providers(self) -> Sequence[Provider]:
        """The backends of the node."""
        return tuple(backend.provider for backend in self._backends.values())

    def find(self, namespace: str, name: str) -> ServedPod | None:
        """One pod by name, with its instance if it has one."""
        pod = self._cache.find(namespace, name)
        if pod is None:
            return None
        uid = PodUID(pod["metadata"]["uid"])
        record, kept = self._workers.records.get(uid), self._kept_logs.of(uid)
        backend = self._backends.get(record.backend or "") if record is not None else None
        if record is None or backend is None:
            return ServedPod(pod, kept_lines=kept)
        return ServedPod(pod, backend.provider, record.ref, kept)

    def _runs(self, pod: Json) -> bool:
        record = self._workers.records.get(PodUID(pod["metadata"]["uid"]))
        seen = record.observation if record is not None else None
        running = seen is not None and seen.phase is InstancePhase.RUNNING
        return running and not desired.is_terminal(pod)
