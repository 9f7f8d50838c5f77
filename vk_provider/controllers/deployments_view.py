"""Deployments with their ReplicaSets and autoscalers, as moving pods needs them.

Only where something moves: these are the largest watches but for pods. Fed by the API server; feeds
``controllers.evacuation``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from vk_provider.bursting.moves import Deployment
from vk_provider.bursting.moves_reading import (
    deployment_view,
    joined,
    revision_view,
    scaler_view,
)
from vk_provider.controllers.watched_views import WatchedViews
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient


class DeploymentsView:
    """All of them, while :meth:`run` runs."""

    def __init__(self, client: KubeClient, on_change: Callable[[], None]) -> None:
        self._deployments = WatchedViews(client, paths.deployments(), deployment_view, on_change)
        self._revisions = WatchedViews(client, paths.replica_sets(), revision_view, on_change)
        self._scalers = WatchedViews(client, paths.autoscalers(), scaler_view, on_change)

    @property
    def is_seen(self) -> bool:
        """Whether all was seen once and is followed."""
        watched = self._all()
        return all(one.synced.is_set() and one.fault is None for one in watched)

    def deployments(self) -> list[Deployment]:
        """Each with what belongs to it."""
        return joined(
            self._deployments.views(), self._revisions.views(), list(self._scalers.views())
        )

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watched in self._all():
                group.create_task(watched.run())

    def _all(self) -> tuple[WatchedViews[Any], ...]:
        return self._deployments, self._revisions, self._scalers
