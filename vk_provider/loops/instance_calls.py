"""Actions on instances: create, delete, end a double, and keep the last words before that.

Every fault of a backend becomes a stimulus. Fed by ``loops.pod_actions``; calls ``loops.backend``.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta

from vk_provider.faults import NotSupportedError, ProviderError
from vk_provider.loops.backend import Backend
from vk_provider.loops.kept_logs import last_words, read_tail
from vk_provider.loops.means import RETRY_SECONDS, Means, Post
from vk_provider.loops.shell import Shell
from vk_provider.pods import actions as todo
from vk_provider.pods import stimuli as news
from vk_provider.pods.desired import full_name
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.slots import Record
from vk_provider.pods.types import InstanceRef, LogOptions
from vk_provider.provider import SupportsLogs

logger = logging.getLogger(__name__)

LOGS_SECONDS = 5.0


class InstanceCalls:
    """One method per action; each returns its answer."""

    def __init__(self, means: Means, shell: Shell) -> None:
        self._means = means
        self._shell = shell

    async def create(
        self, record: Record, action: todo.CreateInstance, _: Post
    ) -> news.Stimulus | None:
        """One create call with the core's retries of what provably created nothing."""
        candidate = action.candidate
        backend = self._means.backends[candidate.backend]
        try:
            ref = await backend.create(action.resolved, candidate.offer)
        except ProviderError as fault:
            return news.CreateFailed(candidate, fault, self._shell.clock.now())
        price = candidate.offer.usd_per_hour
        cost = "" if price is None else f" at {price:.2f} USD/h"
        message = f"Created instance {ref.id} on backend {backend.name}{cost}"
        if record.pod is not None:
            self._means.events.emit(record.pod, "Normal", "Created", message)
        self._means.made(record.uid, action.resolved.pod)
        return news.Created(backend.name, ref, self._shell.clock.now())

    async def delete(
        self, record: Record, action: todo.DeleteInstance, post: Post
    ) -> news.Stimulus | None:
        """Keep the last words where that is wanted, then order the instance's end."""
        backend = self._means.backends[action.backend]
        if action.keep_logs:
            await self._keep_logs(record, backend, action, post)
        try:
            await backend.delete(action.ref, action.grace_seconds)
        except ProviderError as fault:
            return self._not_deleted(action, fault)
        if record.pod is None and record.deleted_at is None:
            metrics = self._shell.metrics
            metrics.orphans_deleted.labels(self._shell.node, backend.name).inc()
        return news.Deleted(self._shell.clock.now(), action.grace_seconds)

    async def delete_extra(
        self, record: Record, action: todo.DeleteExtra, _: Post
    ) -> news.Stimulus | None:
        """Order the end of a double."""
        backend = self._means.backends[action.backend]
        logger.warning(
            "pod %s has a double on backend %s: ending instance %s",
            record.uid, backend.name, action.ref.id,
        )  # fmt: skip
        try:
            await backend.delete(action.ref, 0)
        except ProviderError as fault:
            return self._not_deleted(action, fault)
        return news.ExtraDeleted(action.ref)

    def _not_deleted(
        self, action: todo.DeleteInstance | todo.DeleteExtra, fault: ProviderError
    ) -> news.Stimulus:
        logger.warning(
            "backend %s: instance %s was not ordered to end: %s",
            action.backend, action.ref.id, fault,
        )  # fmt: skip
        wish = getattr(fault, "retry_after_seconds", None) or RETRY_SECONDS
        return news.DeleteFailed(str(fault) or fault.reason, self._later(wish))

    async def _keep_logs(
        self, record: Record, backend: Backend, action: todo.DeleteInstance, post: Post
    ) -> None:
        """Best effort, bounded: an order that stops billing is not delayed by more, and a bug in
        reading does not stop it. What was read before the time was up is kept."""
        provider = backend.provider
        if not isinstance(provider, SupportsLogs) or record.pod is None:
            return
        words: dict[str, str] = {}
        reading = self._shell.spawn(
            self._read_words(record, provider, action.ref, words), f"last words of {record.uid}"
        )
        try:
            await asyncio.wait({reading}, timeout=LOGS_SECONDS)
        finally:
            reading.cancel()
        if words:
            post(record.uid, news.LogsKept(dict(words)))

    async def _read_words(
        self, record: Record, provider: SupportsLogs, ref: InstanceRef, words: dict[str, str]
    ) -> None:
        specs = mappings(mapping(record.pod or {}, "spec"), "containers")
        try:
            for name in [text(container, "name") for _, container in specs]:
                lines = await read_tail(provider.read_logs(ref, name, LogOptions()))
                self._means.kept_logs.keep(record.uid, name, lines)
                words[name] = last_words(lines)
        except (ProviderError, NotSupportedError) as fault:
            logger.debug("no last words of %s: %s", full_name(record.pod or {}), fault)

    def _later(self, seconds: float) -> datetime:
        return self._shell.clock.now() + timedelta(seconds=seconds)
