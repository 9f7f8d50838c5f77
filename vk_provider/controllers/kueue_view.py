"""Kueue's Workloads, where the cluster has them, in the version that it serves.

Kueue may be installed, upgraded or removed while we run, so its API group is asked for again while
it is absent. Fed by the API server; feeds ``controllers.cluster_view``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from vk_provider.bursting.picture import WorkloadView
from vk_provider.bursting.reading import workload_view
from vk_provider.bursting.signals import Kueue
from vk_provider.controllers.watched_views import WatchedViews
from vk_provider.faults import KubeError, KubeNotFoundError, KubeUnavailableError
from vk_provider.kube.client import KubeClient
from vk_provider.kube.watch import WatchTimings
from vk_provider.pods.types import Json

logger = logging.getLogger(__name__)

GROUP = "/apis/kueue.x-k8s.io"
LOOK_AGAIN_SECONDS = 60.0
RETRY_SECONDS = 2.0

LocalQueue = tuple[str, str, str]
"""Namespace and name of a LocalQueue, and the ClusterQueue it feeds."""


class KueueView:
    """The training queue as far as it can be seen."""

    def __init__(
        self,
        client: KubeClient,
        resource: str,
        on_change: Callable[[], None],
        *,
        timings: WatchTimings | None = None,
        look_again_seconds: float = LOOK_AGAIN_SECONDS,
    ) -> None:
        self.looked = asyncio.Event()
        """Set once it is known whether there is a Kueue, and what it holds if there is."""
        self.version = ""
        """The served version, ``v1beta2``; empty while there is none."""
        self._client = client
        self._resource = resource
        self._on_change = on_change
        self._timings = timings
        self._look_again_seconds = look_again_seconds
        self._was_served = False
        self._fault: KubeError | None = None
        self._workloads: WatchedViews[WorkloadView] | None = None
        self._queues: WatchedViews[LocalQueue] | None = None

    @property
    def state(self) -> Kueue:
        """Whether its word can be had. One that was there once and went away is missed."""
        workloads = self._workloads
        if workloads is not None and workloads.synced.is_set() and workloads.fault is None:
            return Kueue.SERVED
        unseen = self._fault is None and workloads is None and not self._was_served
        return Kueue.ABSENT if unseen else Kueue.MISSING

    def workloads(self) -> Sequence[WorkloadView] | None:
        """All of them, with the ClusterQueue that each would go to; None where none are known."""
        if self._workloads is None or not self._workloads.synced.is_set():
            return None
        queues = self._cluster_queues()
        return [
            one
            if one.cluster_queue
            else replace(one, cluster_queue=queues.get((one.namespace, one.queue), ""))
            for one in self._workloads.views()
        ]

    async def run(self) -> None:
        """Look for Kueue and follow it, until cancelled."""
        while True:
            version = await self._find()
            if version:
                await self._follow(version)
            if isinstance(self._fault, KubeUnavailableError):
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self.looked.set()
            await asyncio.sleep(self._look_again_seconds)

    async def _find(self) -> str:
        try:
            group = await self._client.get(GROUP)
        except KubeNotFoundError:
            self._fault = None
            return ""
        except KubeError as fault:
            if self._fault is None:
                logger.warning("whether there is a Kueue is not known: %s", fault)
            self._fault = fault
            self._on_change()
            return ""
        self._fault = None
        return str((group.get("preferredVersion") or {}).get("version") or "")

    async def _follow(self, version: str) -> None:
        base = f"{GROUP}/{version}"
        self.version, self._was_served = version, True
        workloads = WatchedViews(
            self._client,
            f"{base}/workloads",
            lambda obj: workload_view(obj, self._resource),
            self._on_change,
            self._timings,
        )
        queues = WatchedViews(
            self._client, f"{base}/localqueues", _local_queue, self._on_change, self._timings
        )
        self._workloads, self._queues = workloads, queues
        looking = asyncio.ensure_future(self._look(workloads))
        beside = asyncio.ensure_future(queues.run())
        try:
            await workloads.run()
            logger.warning("Kueue's Workloads are served no longer")
        finally:
            looking.cancel()
            beside.cancel()
            await asyncio.gather(looking, beside, return_exceptions=True)
            self._workloads, self._queues, self.version = None, None, ""
            self._on_change()

    async def _look(self, workloads: WatchedViews[WorkloadView]) -> None:
        await workloads.answered.wait()
        self.looked.set()

    def _cluster_queues(self) -> dict[tuple[str, str], str]:
        found: Iterable[LocalQueue] = self._queues.views() if self._queues is not None else ()
        return {(namespace, name): queue for namespace, name, queue in found}


def _local_queue(obj: Json) -> LocalQueue:
    metadata = obj["metadata"]
    queue = (obj.get("spec") or {}).get("clusterQueue") or ""
    return metadata.get("namespace", ""), metadata["name"], queue
