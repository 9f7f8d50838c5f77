"""What a backend pushes between two lists, where it can.

Pushes make pods quicker, lists make them right: a watch that breaks costs nothing but time. Fed by
``provider.watch_instances``; feeds the same mailboxes of ``loops.pod_workers`` as ``loops.relist``.
"""

from __future__ import annotations

from vk_provider.loops.backend import Backend
from vk_provider.loops.belonging import Belonging
from vk_provider.loops.following import Following
from vk_provider.loops.pod_workers import PodWorkers
from vk_provider.loops.shell import Shell
from vk_provider.pods.stimuli import Observed
from vk_provider.pods.types import Observation
from vk_provider.provider import SupportsWatch


class Pushes:
    """The ear at one backend."""

    def __init__(
        self, backend: Backend, belonging: Belonging, workers: PodWorkers, shell: Shell
    ) -> None:
        self._backend = backend
        self._belonging = belonging
        self._workers = workers
        self._shell = shell

    async def run(self) -> None:
        """Take what the backend pushes, until cancelled."""
        provider = self._backend.provider
        if isinstance(provider, SupportsWatch):
            following = Following(f"backend {self._backend.name}: its watch", self._shell)
            await following.run(provider.watch_instances, self._take)

    def _take(self, seen: Observation) -> None:
        """A push about the instance of a pod that we know. Orphans and doubles are the lists'
        business: a push tells of one instance and nothing of the others."""
        record = self._workers.records.get(seen.stamp.pod_uid)
        if not self._belonging.is_ours(seen) or record is None or record.pod is None:
            return
        if record.ref in (None, seen.ref):
            at, lag = self._shell.clock.now(), self._backend.provider.traits.list_lag_seconds
            self._workers.post(seen.stamp.pod_uid, Observed(self._backend.name, seen, at, lag))
