"""Actions on the API server's side of a pod: gather what it refers to, write, ask, remove.

Every fault of the API server becomes a stimulus. Fed by ``loops.pod_actions``; calls
``loops.preparation``, ``kube.writer`` and ``kube.client``.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta

from vk_provider.faults import KubeError, KubeNotFoundError
from vk_provider.kube import paths
from vk_provider.loops.means import RETRY_SECONDS, Means, Post
from vk_provider.loops.shell import Shell
from vk_provider.pods import actions as todo
from vk_provider.pods import stimuli as news
from vk_provider.pods.desired import full_name
from vk_provider.pods.events import WaitingReason
from vk_provider.pods.slots import Record
from vk_provider.pods.types import PodUID, Waiting

logger = logging.getLogger(__name__)

GONE_SECONDS = 2.0
"""A PATCH told that the pod is gone: the watch will say so too, soon."""


class PodWrites:
    """One method per action; each returns its answer."""

    def __init__(self, means: Means, shell: Shell) -> None:
        self._means = means
        self._shell = shell
        self._said: dict[PodUID, str] = {}

    def forget(self, uid: PodUID) -> None:
        """Nothing of the pod is left."""
        self._said.pop(uid, None)

    async def prepare(self, record: Record, _: todo.Prepare, post: Post) -> news.Stimulus | None:
        """Resolve references, translate, rank the offers."""
        uid, pod = record.uid, record.pod or {}
        try:
            return await self._means.preparer.prepare(uid, pod)
        except KubeError as fault:
            self._complain(record, f"what it refers to can't be read: {fault}")
            asyncio.get_running_loop().call_later(RETRY_SECONDS, post, uid, news.PreparationStale())
            waiting = Waiting(str(WaitingReason.CREATE_CONTAINER_CONFIG_ERROR), str(fault))
            return news.Prepared(missing=waiting)

    async def write(
        self, record: Record, action: todo.WriteStatus, _: Post
    ) -> news.Stimulus | None:
        """One PATCH of the pod's status."""
        try:
            written = await self._means.writer.write(record.pod or {}, action.patch)
        except KubeError as fault:
            self._count("failed")
            self._complain(record, f"its status was not written: {fault}")
            return news.StatusWritten(None, retry_at=self._later(RETRY_SECONDS))
        self._said.pop(record.uid, None)
        if written is None:
            self._count("gone")
            return news.StatusWritten(None, retry_at=self._later(GONE_SECONDS))
        self._count("written")
        return news.StatusWritten(written)

    async def check_orphan(
        self, record: Record, action: todo.CheckOrphan, _: Post
    ) -> news.Stimulus | None:
        """Ask for the pod that an instance is stamped with."""
        stamp = action.stamp
        try:
            pod = await self._means.client.get(paths.pod(stamp.namespace, stamp.pod_name))
        except KubeNotFoundError:
            exists = False
        except KubeError as fault:
            self._complain(record, f"can't ask for the owner of its instance: {fault}")
            exists = True  # unknown is not absent: nothing is touched
        else:
            exists = pod["metadata"]["uid"] == record.uid
        if not exists:
            logger.warning("pod %s/%s is gone: its instance goes", stamp.namespace, stamp.pod_name)
        return news.OrphanChecked(exists)

    async def remove(self, record: Record, _: todo.RemovePod, __: Post) -> news.Stimulus | None:
        """Remove the pod's object; the watch confirms it, so success needs no answer."""
        try:
            await self._means.writer.remove(record.pod or {})
        except KubeError as fault:
            self._complain(record, f"it was not removed: {fault}")
            return news.RemovalFailed(self._later(RETRY_SECONDS))
        return None

    def _complain(self, record: Record, sentence: str) -> None:
        """Once per pod and sentence, since it is tried again and again."""
        if self._said.get(record.uid) != sentence:
            self._said[record.uid] = sentence
            logger.warning("pod %s: %s", full_name(record.pod or {}), sentence)

    def _count(self, outcome: str) -> None:
        self._shell.metrics.status_patches.labels(self._shell.node, outcome).inc()

    def _later(self, seconds: float) -> datetime:
        return self._shell.clock.now() + timedelta(seconds=seconds)
