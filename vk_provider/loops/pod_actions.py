"""Carries out what a pod's step decided: calls to its backend and to the API server.

Each action runs as a task of its own and answers with exactly one stimulus, whatever happens: a
fault becomes a stimulus too, and even our own bug must not leave a pod waiting for an answer.
Fed by ``loops.pod_workers``; calls ``loops.backend``, ``kube.writer`` and ``kube.events``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from vk_provider.faults import (
    KubeError,
    KubeNotFoundError,
    OutcomeUnknownError,
    ProviderError,
)
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.events import EventRecorder
from vk_provider.kube.writer import StatusWriter
from vk_provider.loops.backend import Backend
from vk_provider.loops.kept_logs import KeptLogs, last_words, read_tail
from vk_provider.loops.preparation import Preparer
from vk_provider.loops.shell import Shell
from vk_provider.loops.threshold import Threshold
from vk_provider.pods import actions as todo
from vk_provider.pods import stimuli as news
from vk_provider.pods.events import WaitingReason
from vk_provider.pods.record import Record
from vk_provider.pods.types import Json, LogOptions, PodUID, Waiting
from vk_provider.provider import SupportsLogs

logger = logging.getLogger(__name__)

Post = Callable[[PodUID, news.Stimulus], None]
Work = Callable[[Record, Any, Post], Coroutine[Any, Any, None]]

RETRY_SECONDS = 10.0
LOGS_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Means:
    """Whom the actions speak to."""

    client: KubeClient
    writer: StatusWriter
    events: EventRecorder
    preparer: Preparer
    backends: Mapping[str, Backend]
    kept_logs: KeptLogs


class PodActions:
    """The hands of the pod workers."""

    def __init__(self, means: Means, threshold: Threshold, shell: Shell) -> None:
        self._means = means
        self._threshold = threshold
        self._shell = shell
        self._creates: dict[PodUID, asyncio.Task[None]] = {}
        self._works: dict[type, Work] = {
            todo.Prepare: self._prepare,
            todo.WriteStatus: self._write,
            todo.CreateInstance: self._create,
            todo.DeleteInstance: self._delete,
            todo.DeleteExtra: self._delete_extra,
            todo.CheckOrphan: self._check_orphan,
            todo.RemovePod: self._remove,
        }

    def announce(self, record: Record, notice: news.Notice) -> None:
        """Queue an Event about the pod."""
        if record.pod is not None:
            self._means.events.emit(record.pod, notice.type, notice.reason, notice.message)

    def forget(self, uid: PodUID) -> None:
        """Nothing of the pod is left."""
        self._means.preparer.release(uid)
        self._means.kept_logs.drop(uid)

    def begin(self, record: Record, action: todo.Action, post: Post) -> None:
        """Start an action; ``post`` gets its answer."""
        if isinstance(action, todo.CancelCreate):
            task = self._creates.get(record.uid)
            if task is not None:
                task.cancel()
            return
        work = self._works[type(action)](record, action, post)
        task = self._shell.spawn(work, f"{type(action).__name__} {record.uid}")
        if isinstance(action, todo.CreateInstance):
            self._creates[record.uid] = task

    async def _prepare(self, record: Record, _: todo.Prepare, post: Post) -> None:
        uid, pod = record.uid, record.pod or {}
        try:
            post(uid, await self._means.preparer.prepare(uid, pod))
        except KubeError as fault:
            logger.warning("pod %s: its references can't be read: %s", _name(pod), fault)
            waiting = Waiting(str(WaitingReason.CREATE_CONTAINER_CONFIG_ERROR), str(fault))
            post(uid, news.Prepared(missing=waiting))
            loop = asyncio.get_running_loop()
            loop.call_later(RETRY_SECONDS, post, uid, news.PreparationStale())

    async def _write(self, record: Record, action: todo.WriteStatus, post: Post) -> None:
        uid, pod = record.uid, record.pod or {}
        try:
            written = await self._means.writer.write(pod, action.patch)
        except KubeError as fault:
            logger.warning("the status of pod %s was not written: %s", _name(pod), fault)
            post(uid, news.StatusWritten(None, retry_at=self._later(RETRY_SECONDS)))
            return
        post(uid, news.StatusWritten(written, retry_at=None if written else self._later(1.0)))

    async def _create(self, record: Record, action: todo.CreateInstance, post: Post) -> None:
        uid, candidate = record.uid, action.candidate
        backend = self._means.backends[candidate.backend]
        self._threshold.create_begins()
        try:
            ref = await backend.create(action.resolved, candidate.offer)
        except ProviderError as fault:
            self._create_failed(record, candidate, fault, post)
        except asyncio.CancelledError:
            cancelled = OutcomeUnknownError("the create call was cancelled")
            self._create_failed(record, candidate, cancelled, post)
        except Exception as error:
            # A bug in a provider: what it did is unknown, and the pod must get an answer.
            logger.exception("backend %s: the create call failed", backend.name)
            bug = OutcomeUnknownError(f"{type(error).__name__} in the provider")
            self._create_failed(record, candidate, bug, post)
        else:
            self._threshold.created(candidate)
            self._announce_created(record, candidate, ref.id)
            post(uid, news.Created(backend.name, ref, self._shell.clock.now()))
        finally:
            self._creates.pop(uid, None)

    def _create_failed(
        self, record: Record, candidate: news.Candidate, fault: ProviderError, post: Post
    ) -> None:
        self._threshold.create_failed(candidate, fault)
        logger.info(
            "pod %s: %s (%s): %s", _name(record.pod or {}), candidate.backend, fault.reason, fault
        )
        post(record.uid, news.CreateFailed(candidate, fault, self._shell.clock.now()))

    def _announce_created(self, record: Record, candidate: news.Candidate, instance: str) -> None:
        price = candidate.offer.usd_per_hour
        cost = "" if price is None else f" at {price:.2f} USD/h"
        text = f"Created instance {instance} on backend {candidate.backend}{cost}"
        self.announce(record, news.Notice("Normal", "Created", text))

    async def _delete(self, record: Record, action: todo.DeleteInstance, post: Post) -> None:
        backend = self._means.backends[action.backend]
        if action.keep_logs:
            await self._keep_logs(record, backend, action, post)
        try:
            await backend.delete(action.ref, action.grace_seconds)
        except ProviderError as fault:
            logger.warning("backend %s: instance %s: %s", backend.name, action.ref.id, fault)
            retry = getattr(fault, "retry_after_seconds", None) or RETRY_SECONDS
            post(record.uid, news.DeleteFailed(str(fault), self._later(retry)))
        except Exception as error:
            logger.exception("backend %s: the delete call failed", backend.name)
            post(record.uid, news.DeleteFailed(repr(error), self._later(RETRY_SECONDS)))
        else:
            post(record.uid, news.Deleted(self._shell.clock.now(), action.grace_seconds))

    async def _delete_extra(self, record: Record, action: todo.DeleteExtra, post: Post) -> None:
        uid, backend_name = record.uid, action.backend
        backend = self._means.backends[backend_name]
        logger.warning("pod %s has a double: ending instance %s", uid, action.ref.id)
        try:
            await backend.delete(action.ref, 0)
        except ProviderError as fault:
            logger.warning("backend %s: instance %s: %s", backend.name, action.ref.id, fault)
            post(uid, news.DeleteFailed(str(fault), self._later(RETRY_SECONDS)))
        else:
            post(uid, news.ExtraDeleted(action.ref))

    async def _keep_logs(
        self, record: Record, backend: Backend, action: todo.DeleteInstance, post: Post
    ) -> None:
        """Best effort, bounded: an order that stops billing is not delayed by more."""
        provider = backend.provider
        if not isinstance(provider, SupportsLogs) or record.pod is None:
            return
        words: dict[str, str] = {}
        try:
            async with asyncio.timeout(LOGS_SECONDS):
                for container in record.pod["spec"]["containers"]:
                    source = provider.read_logs(action.ref, container["name"], LogOptions())
                    lines = await read_tail(source)
                    self._means.kept_logs.keep(record.uid, container["name"], lines)
                    words[container["name"]] = last_words(lines)
        except (ProviderError, TimeoutError) as fault:
            logger.debug("no last words of instance %s: %s", action.ref.id, fault)
        if words:
            post(record.uid, news.LogsKept(words))

    async def _check_orphan(self, record: Record, action: todo.CheckOrphan, post: Post) -> None:
        uid, stamp = record.uid, action.stamp
        try:
            pod = await self._means.client.get(paths.pod(stamp.namespace, stamp.pod_name))
            exists = pod["metadata"]["uid"] == uid
        except KubeNotFoundError:
            exists = False
        except KubeError as fault:
            logger.warning("can't ask for the owner of an instance: %s", fault)
            exists = True  # unknown is not absent: nothing is touched
        if not exists:
            logger.warning("pod %s/%s is gone: its instance goes", stamp.namespace, stamp.pod_name)
        post(uid, news.OrphanChecked(exists))

    async def _remove(self, record: Record, _: todo.RemovePod, post: Post) -> None:
        uid, pod = record.uid, record.pod or {}
        try:
            await self._means.writer.remove(pod)
        except KubeError as fault:
            logger.warning("pod %s was not removed: %s", _name(pod), fault)
            post(uid, news.RemovalFailed(self._later(RETRY_SECONDS)))

    def _later(self, seconds: float) -> datetime:
        return self._shell.clock.now() + timedelta(seconds=seconds)


def _name(pod: Json) -> str:
    metadata = pod.get("metadata", {})
    return f"{metadata.get('namespace')}/{metadata.get('name')}"
