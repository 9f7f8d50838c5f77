"""The Services of the namespaces that have pods here, watched from the first question on to the
end of the last pod.

Only asked where an instance can reach the home cluster's ClusterIPs: then containers get the
variables that announce services.

Fed by ``kube.watched``; feeds ``pods.services`` through ``loops.preparation``.
"""

from __future__ import annotations

from collections.abc import Sequence

from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.watch import WatchTimings
from vk_provider.kube.watched import FIRST_ANSWER_SECONDS, Watched, WatchedSet
from vk_provider.pods.types import Json, PodUID

MASTER_NAMESPACE = "default"
"""Where the Service ``kubernetes`` lives, which every pod is told of."""


class Services:
    """Services by namespace, watched while a pod wants them and :meth:`run` runs."""

    def __init__(self, client: KubeClient, *, timings: WatchTimings | None = None) -> None:
        self._client = client
        self._timings = timings
        self._watches: WatchedSet[str] = WatchedSet(self._make)
        self._namespaces: dict[PodUID, str] = {}

    async def run(self) -> None:
        """Follow the namespaces asked for until cancelled."""
        await self._watches.run()

    async def of(
        self, owner: PodUID, namespace: str, seconds: float = FIRST_ANSWER_SECONDS
    ) -> Sequence[Json]:
        """The Services that a pod of this namespace may be told of: its own and ``default``'s.

        Waits for the first answer; a namespace that may not be read has none. From now on the pod
        wants them.
        """
        self._namespaces[owner] = namespace
        watches = [self._watches.start(name) for name in sorted({namespace, MASTER_NAMESPACE})]
        for watched in watches:
            await watched.wait(seconds)
        return [service for watched in watches for service in watched.objects()]

    def release(self, owner: PodUID) -> None:
        """The pod needs none any more; a namespace without pods is not watched. ``default`` is:
        every pod that comes wants it."""
        namespace = self._namespaces.pop(owner, MASTER_NAMESPACE)
        if namespace != MASTER_NAMESPACE and namespace not in self._namespaces.values():
            self._watches.stop(namespace)

    def _make(self, namespace: str) -> Watched:
        return Watched(self._client, paths.services(namespace), timings=self._timings)
