"""Watches our own Node, so that what others write over is put right within seconds.

Somebody's status edit would otherwise stand until the five-minute report: Ready=False for so long
moves every pod. A watch costs nothing at rest. Fed by ``kube.watched``; tells
``loops.node_heartbeat``.
"""

from __future__ import annotations

from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.watched import Watched
from vk_provider.loops.node_heartbeat import NodeHeartbeat


class NodeWatch:
    """The eye on one Node."""

    def __init__(self, client: KubeClient, name: str, heartbeat: NodeHeartbeat) -> None:
        self._heartbeat = heartbeat
        self._watched = Watched(client, paths.nodes(), name, on_change=self._changed)

    async def run(self) -> None:
        """Follow until cancelled."""
        await self._watched.run()

    def _changed(self) -> None:
        self._heartbeat.see(next(iter(self._watched.objects()), None))
