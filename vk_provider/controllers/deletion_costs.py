"""Makes pods outside the first to go when replicas shrink: they cost money.

A ReplicaSet deletes the pod with the lowest ``controller.kubernetes.io/pod-deletion-cost`` first. A
cost that somebody has set stays. Fed by ``controllers.cluster_view``; writes to ``pods``.
"""

from __future__ import annotations

import asyncio
import logging

from vk_provider.bursting import names
from vk_provider.bursting.picture import PodView
from vk_provider.controllers.cluster_view import ClusterView
from vk_provider.controllers.means import ControllerMeans
from vk_provider.faults import ConflictError, KubeError, KubeNotFoundError
from vk_provider.kube import paths
from vk_provider.kube.client import PatchKind

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 10.0


class DeletionCosts:
    """The cost of every opted-in pod on a virtual node that takes part."""

    def __init__(self, means: ControllerMeans, view: ClusterView, cost: int) -> None:
        self._means = means
        self._view = view
        self._cost = str(cost)
        self._changed = view.subscribe()
        self._done: set[str] = set()

    async def run(self) -> None:
        """Write until cancelled."""
        await self._view.wait()
        while True:
            self._changed.clear()
            is_done = not self._means.may_act() or await self._write_all()
            try:
                async with asyncio.timeout(None if is_done else AGAIN_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _write_all(self) -> bool:
        """Whether nothing is left to be done. A refusal is said once and tried again later."""
        picture = self._view.picture()
        virtual = {node.name for node in picture.virtual if node.is_gated}
        outside = [pod for pod in picture.pods if pod.node in virtual]
        self._done &= {pod.uid for pod in outside}
        for pod in outside:
            if self._is_due(pod):
                try:
                    await self._write(pod)
                except (KubeNotFoundError, ConflictError):
                    pass  # it is gone, or it is another pod by now
                except KubeError as fault:
                    logger.warning("deletion cost of %s/%s: %s", pod.namespace, pod.name, fault)
                    return False
                self._done.add(pod.uid)
        return True

    def _is_due(self, pod: PodView) -> bool:
        """Only once: whoever takes it away again does not want it."""
        settled = pod.is_over or pod.is_terminating or pod.uid in self._done
        wanted = pod.owner is not None and self._view.selection.is_inference(pod)
        return wanted and not settled and pod.deletion_cost is None

    async def _write(self, pod: PodView) -> None:
        metadata = {"uid": pod.uid, "annotations": {names.DELETION_COST: self._cost}}
        await self._means.client.patch(
            paths.pod(pod.namespace, pod.name), {"metadata": metadata}, kind=PatchKind.MERGE
        )
