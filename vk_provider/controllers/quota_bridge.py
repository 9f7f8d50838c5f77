"""Keeps Kueue's nominal quotas equal to what the nodes can give, or tells what it would write.

Fed by ``controllers.cluster_view`` (nodes) and watches of ResourceFlavors and ClusterQueues; what
:mod:`vk_provider.bursting.quota` decides is written as JSON patches that test what they replace.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace

from vk_provider.bursting.picture import HomeNode
from vk_provider.bursting.quota import (
    Key,
    Node,
    Patience,
    QuotaChange,
    QuotaPlan,
    QuotaRefusal,
    plan,
)
from vk_provider.bursting.quota_objects import FlavorView, QueueView, flavor_view, queue_view
from vk_provider.controllers.cluster_view import ClusterView
from vk_provider.controllers.kueue_view import GROUP
from vk_provider.controllers.means import ControllerMeans
from vk_provider.controllers.watched_views import WatchedViews
from vk_provider.faults import InvalidObjectError, KubeError
from vk_provider.kube.client import PatchKind
from vk_provider.pods.types import Json
from vk_provider.settings_bursting_quota_bridge import QuotaBridgeSettings

logger = logging.getLogger(__name__)

CHANGED, REFUSED = "QuotaChanged", "QuotaLeftAlone"
LOOK_AGAIN_SECONDS = 15.0


class QuotaBridge:
    """One cluster's quotas."""

    def __init__(
        self, means: ControllerMeans, view: ClusterView, settings: QuotaBridgeSettings
    ) -> None:
        self._means = means
        self._view = view
        self._settings = settings
        selection = view.selection
        self._rules = replace(
            settings.rules,
            resource=selection.resource,
            queues=settings.rules.queues or selection.queues,
        )
        self._changed = view.subscribe()
        self._memory: Mapping[Key, Patience] = {}
        self._told: dict[Key, str] = {}

    async def run(self) -> None:
        """Wait for a Kueue, follow it, and again when it went away; until cancelled."""
        await self._view.wait()
        while True:
            if self._view.kueue.version:
                await self._follow(f"{GROUP}/{self._view.kueue.version}")
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def _follow(self, base: str) -> None:
        """Until Kueue's objects are served no longer."""
        client, changed = self._means.client, self._changed.set
        flavors = WatchedViews(client, f"{base}/resourceflavors", flavor_view, changed)
        queues = WatchedViews(client, f"{base}/clusterqueues", queue_view, changed)
        running = [asyncio.ensure_future(one.run()) for one in (flavors, queues)]
        bridging = asyncio.ensure_future(self._bridge(base, flavors, queues))
        try:
            await asyncio.wait([*running, bridging], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*running, bridging):
                task.cancel()
            await asyncio.gather(*running, bridging, return_exceptions=True)

    async def _bridge(
        self, base: str, flavors: WatchedViews[FlavorView], queues: WatchedViews[QueueView]
    ) -> None:
        await flavors.synced.wait()
        await queues.synced.wait()
        while True:
            self._changed.clear()
            is_seen = flavors.fault is None and queues.fault is None
            if self._means.may_act() and is_seen:
                await self._look(base, list(flavors.views()), list(queues.views()))
            # A second of patience: a node that joins is many changes.
            await asyncio.sleep(min(self._settings.every, 1.0))
            try:
                async with asyncio.timeout(self._settings.every):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _look(self, base: str, flavors: list[FlavorView], queues: list[QueueView]) -> None:
        found = plan(
            self._nodes(),
            flavors,
            queues,
            self._rules,
            self._memory,
            self._means.clock.now(),
        )
        self._memory = found.memory
        uids = {queue.name: queue.uid for queue in queues}
        self._report(found, queues, uids)
        for change in found.changes:
            if not self._means.may_act():
                return
            await self._carry_out(base, change, uids)

    def _nodes(self) -> list[Node]:
        """Cordoned and broken ones too: how many there are is part of the reason."""
        home: list[HomeNode] = list(self._view.home_nodes())
        return [*home, *self._view.picture().virtual]

    def _report(self, found: QuotaPlan, queues: list[QueueView], uids: Mapping[str, str]) -> None:
        metrics = self._means.metrics.bursting
        wanted = {(one.line.queue, one.line.flavor): one.amount for one in found.changes}
        metrics.quota_gpus.clear()
        metrics.quota_refused.clear()
        for queue in queues:
            for line in queue.lines:
                if (line.queue, line.flavor) not in found.memory:
                    continue
                if line.resource == self._rules.resource:
                    target = wanted.get((line.queue, line.flavor), line.nominal)
                    labels = (line.queue, line.flavor)
                    metrics.quota_gpus.labels(*labels, "nominal").set(line.nominal)
                    metrics.quota_gpus.labels(*labels, "target").set(target)
        now = {(one.queue, one.flavor) for one in found.refusals} | wanted.keys()
        for key in self._told.keys() - now:
            del self._told[key]
        for refusal in found.refusals:
            metrics.quota_refused.labels(refusal.queue, refusal.flavor).set(1)
            self._tell_refusal(refusal, uids)

    def _tell_refusal(self, refusal: QuotaRefusal, uids: Mapping[str, str]) -> None:
        key = (refusal.queue, refusal.flavor)
        if self._told.get(key) != refusal.why:
            self._told[key] = refusal.why
            message = f"flavor {refusal.flavor}: {refusal.why}"
            logger.warning("ClusterQueue %s: %s", refusal.queue, message)
            self._tell(refusal.queue, uids, "Warning", REFUSED, message)

    async def _carry_out(self, base: str, change: QuotaChange, uids: Mapping[str, str]) -> None:
        line = change.line
        words = (
            f"flavor {line.flavor}: {line.resource} {line.nominal} -> {change.amount}: {change.why}"
        )
        key = (line.queue, line.flavor)
        if self._settings.dry_run:
            if self._told.get(key) != words:
                self._told[key] = words
                logger.info("dry run: ClusterQueue %s: %s", line.queue, words)
                self._tell(line.queue, uids, "Normal", CHANGED, f"dry run: {words}")
            return
        path = f"{base}/clusterqueues/{line.queue}"
        try:
            await self._means.client.patch(path, change.patch(), kind=PatchKind.JSON)
        except InvalidObjectError as fault:
            # The test failed: somebody edited it meanwhile. The watch shows how.
            logger.info("ClusterQueue %s: not written: %s", line.queue, fault)
        except KubeError as fault:
            logger.warning("ClusterQueue %s: %s: not written: %s", line.queue, words, fault)
        else:
            self._told.pop(key, None)
            logger.info("ClusterQueue %s: %s", line.queue, words)
            self._means.metrics.bursting.quota_changes.labels(*key).inc()
            self._tell(line.queue, uids, "Normal", CHANGED, words)

    def _tell(
        self, queue: str, uids: Mapping[str, str], kind: str, reason: str, message: str
    ) -> None:
        about: Json = {
            "apiVersion": f"kueue.x-k8s.io/{self._view.kueue.version or 'v1beta2'}",
            "kind": "ClusterQueue",
            "metadata": {"name": queue, "uid": uids.get(queue, "")},
        }
        self._means.events.emit(about, kind, reason, message)
