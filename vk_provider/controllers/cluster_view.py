"""The shared picture of the cluster: one watch per kind, whoever asks.

Nodes and pods always; ReplicaSets and Deployments only where somebody wants them; Kueue's Workloads
where the cluster has them. Fed by the API server; feeds every controller, which subscribes and then
takes :meth:`ClusterView.picture`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from vk_provider.bursting.picture import HomeNode, Picture, PodView, Selection, VirtualNode
from vk_provider.bursting.reading import node_view, pod_view
from vk_provider.bursting.signals import Kueue, WatchSignal
from vk_provider.bursting.spare import usable_home
from vk_provider.controllers.kueue_view import KueueView
from vk_provider.controllers.watched_views import WatchedViews
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.watch import WatchTimings


class ClusterView:
    """What all controllers of one process see. Runs while :meth:`run` does."""

    def __init__(
        self,
        client: KubeClient,
        selection: Selection,
        *,
        timings: WatchTimings | None = None,
    ) -> None:
        self.selection = selection
        resource = selection.resource
        self._listeners: list[asyncio.Event] = []
        self._picture: Picture | None = None
        self._nodes = WatchedViews(
            client, paths.nodes(), lambda obj: node_view(obj, resource), self._changed, timings
        )
        self._pods = WatchedViews(
            client, paths.pods(), lambda obj: pod_view(obj, resource), self._changed, timings
        )
        self.kueue = KueueView(client, resource, self._changed, timings=timings)

    def subscribe(self) -> asyncio.Event:
        """An event of the caller's own, set at every change; the caller clears it."""
        event = asyncio.Event()
        self._listeners.append(event)
        return event

    def picture(self) -> Picture:
        """The cluster as it is seen now."""
        if self._picture is None:
            nodes = tuple(self._nodes.views())
            self._picture = Picture(
                home=tuple(n for n in nodes if isinstance(n, HomeNode) and n.gpus > 0),
                virtual=tuple(n for n in nodes if isinstance(n, VirtualNode)),
                pods=tuple(self._pods.views()),
                workloads=self.kueue.workloads(),
            )
        return self._picture

    def home_nodes(self) -> Sequence[HomeNode]:
        """All real nodes, also those that have no GPU to give at the moment."""
        return [n for n in self._nodes.views() if isinstance(n, HomeNode)]

    def pod(self, uid: str) -> PodView | None:
        """One pod."""
        return self._pods.get(uid)

    def signal(self) -> WatchSignal:
        """How far what is seen can be believed."""
        inference = [p for p in self.picture().pods if self.selection.is_inference(p)]
        return WatchSignal(
            is_synced=all(watched.synced.is_set() for watched in self._all()),
            broken_for=_broken_for(self._all()),
            home_nodes=len(usable_home(self.picture(), self.selection, inference)),
            kueue=self.kueue.state if self.kueue.looked.is_set() else Kueue.MISSING,
        )

    async def wait(self) -> None:
        """Until everything was seen once."""
        for watched in self._all():
            await watched.synced.wait()
        await self.kueue.looked.wait()

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watched in self._all():
                group.create_task(watched.run())
            group.create_task(self.kueue.run())

    def _all(self) -> Iterator[WatchedViews[Any]]:
        yield self._nodes
        yield self._pods

    def _changed(self) -> None:
        self._picture = None
        for listener in self._listeners:
            listener.set()


def _broken_for(watches: Iterator[WatchedViews[Any]]) -> float:
    """How long the first of them has not run, in seconds."""
    broken = [one.broken_at for one in watches if one.broken_at is not None]
    return asyncio.get_running_loop().time() - min(broken) if broken else 0.0
