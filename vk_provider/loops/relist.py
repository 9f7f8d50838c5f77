"""One list per tick of one backend: observations for the pods, absences, orphans, an outage.

A list that fails, is partial or is suspiciously empty changes no pod. A list is one call for the
whole node, whatever the number of pods. Fed by ``loops.backend``; feeds ``loops.pod_workers`` and
the door. Where a backend can push, its watch feeds the same mailboxes between the ticks.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from vk_provider.faults import GarbledAnswerError, ProviderError
from vk_provider.loops.backend import Backend
from vk_provider.loops.pod_workers import PodWorkers
from vk_provider.loops.shell import Shell
from vk_provider.loops.threshold import Threshold
from vk_provider.pods.record import Existence
from vk_provider.pods.stimuli import Missed, Observed
from vk_provider.pods.types import InstancePhase, Observation, PodUID
from vk_provider.provider import SupportsWatch

logger = logging.getLogger(__name__)

SUSPICIOUS_FROM = 3
"""An empty list while so many instances were there is disbelieved at first ..."""
SUSPICIOUS_TIMES = 6
"""... and believed after so many in a row."""


@dataclass(frozen=True, slots=True)
class RelistSettings:
    """Seconds between two lists, and how long lists may fail before the door closes."""

    cluster_id: str
    node_name: str
    tick_seconds: float = 10.0
    outage_after_seconds: float = 60.0


class Relist:
    """The eye on one backend."""

    def __init__(
        self,
        settings: RelistSettings,
        backend: Backend,
        workers: PodWorkers,
        threshold: Threshold,
        shell: Shell,
    ) -> None:
        self.last_good: float | None = None
        self.spending: float = 0.0
        self.running: int = 0
        self._settings = settings
        self._backend = backend
        self._workers = workers
        self._threshold = threshold
        self._shell = shell
        self._failing_since: float | None = None
        self._empty = 0
        self._labels = (settings.node_name, backend.name)

    async def run(self) -> None:
        """List at every tick until cancelled."""
        while True:
            begun = self._shell.clock.steady()
            if self._shell.may_act():
                await self.once()
            took = self._shell.clock.steady() - begun
            pause = self._settings.tick_seconds * (0.95 + 0.1 * self._shell.jitter())
            await asyncio.sleep(max(0.1, pause - took))

    async def watch(self) -> None:
        """Take what the backend pushes, until cancelled; a broken stream is opened again."""
        provider = self._backend.provider
        while isinstance(provider, SupportsWatch):
            try:
                async for seen in provider.watch_instances():
                    if self._is_ours(seen):
                        at = self._shell.clock.now()
                        self._workers.post(
                            seen.stamp.pod_uid, Observed(self._backend.name, seen, at)
                        )
            except ProviderError as fault:
                logger.warning("backend %s: its watch broke: %s", self._backend.name, fault)
            await asyncio.sleep(1.0 + self._shell.jitter())

    async def once(self) -> None:
        """One list and all that follows from it."""
        started_at = self._shell.clock.now()
        try:
            seen = await self._backend.list()
        except ProviderError as fault:
            self._failed(fault.reason, str(fault))
            return
        except Exception:
            # A bug in a provider is an outage of it, never the end of this loop.
            logger.exception("backend %s: the list failed", self._backend.name)
            self._failed("ProviderBug", "the provider failed; see the log")
            return
        ours = [each for each in seen if self._is_ours(each)]
        self._report(seen, ours)
        if self._suspicious(ours):
            self._failed("SuspiciouslyEmpty", "the list is empty although instances were there")
            return
        self._good()
        self._hand_out(ours, started_at)

    def _is_ours(self, seen: Observation) -> bool:
        stamp, mine = seen.stamp, self._settings
        return stamp.cluster_id == mine.cluster_id and stamp.node_name == mine.node_name

    def _hand_out(self, ours: Sequence[Observation], started_at: datetime) -> None:
        name, lag = self._backend.name, self._backend.provider.traits.list_lag_seconds
        groups: dict[PodUID, list[Observation]] = defaultdict(list)
        for each in ours:
            groups[each.stamp.pod_uid].append(each)
        for uid, group in groups.items():
            kept = self._keep(uid, group)
            extras = tuple(
                each.ref
                for each in group
                if each is not kept and each.phase is not InstancePhase.DELETING
            )
            self._workers.post(uid, Observed(name, kept, started_at, lag, extras))
        missed = Missed(name, started_at, lag)
        for uid, record in list(self._workers.records.items()):
            if uid not in groups and record.backend == name and record.exists in _MAY_EXIST:
                self._workers.post(uid, missed)

    def _keep(self, uid: PodUID, group: Sequence[Observation]) -> Observation:
        """Of several instances with one stamp: the one we know, else the oldest."""
        record = self._workers.records.get(uid)
        known = [each for each in group if record is not None and each.ref == record.ref]
        living = [each for each in group if each.phase is not InstancePhase.DELETING]
        return min(known or living or group, key=_age)

    def _suspicious(self, ours: Sequence[Observation]) -> bool:
        """Empty, though several live instances were there that nobody ordered to end."""
        if ours:
            self._empty = 0
            return False
        expected = sum(
            record.exists is Existence.PRESENT
            and record.backend == self._backend.name
            and record.deleted_at is None
            and record.observation is not None
            for record in self._workers.records.values()
        )
        self._empty = self._empty + 1 if expected >= SUSPICIOUS_FROM else 0
        return 0 < self._empty < SUSPICIOUS_TIMES

    def _good(self) -> None:
        if self._failing_since is not None:
            logger.info("backend %s: lists work again", self._backend.name)
        self.last_good, self._failing_since = self._shell.clock.steady(), None
        self._threshold.outage(self._backend.name, None)
        self._shell.metrics.backend_up.labels(*self._labels).set(1)

    def _failed(self, reason: str, message: str) -> None:
        metrics, now = self._shell.metrics, self._shell.clock.steady()
        metrics.backend_list_failures.labels(*self._labels, reason).inc()
        metrics.backend_up.labels(*self._labels).set(0)
        if reason == GarbledAnswerError.reason:
            metrics.garbled_observations.labels(*self._labels).inc()
        if self._failing_since is None:
            self._failing_since = now
            logger.warning("backend %s: the list failed: %s", self._backend.name, message)
        if now - self._failing_since >= self._settings.outage_after_seconds:
            self._threshold.outage(self._backend.name, message)

    def _report(self, seen: Sequence[Observation], ours: Sequence[Observation]) -> None:
        metrics = self._shell.metrics
        phases = Counter(each.phase for each in ours)
        for phase in InstancePhase:
            metrics.instances.labels(*self._labels, str(phase)).set(phases[phase])
        self.spending = sum(each.usd_per_hour or 0.0 for each in ours)
        self.running = len(ours)
        metrics.price_usd_per_hour.labels(*self._labels).set(self.spending)
        garbled = [each for each in ours if each.phase is InstancePhase.UNKNOWN]
        if garbled:
            metrics.garbled_observations.labels(*self._labels).inc(len(garbled))
            ids = ", ".join(each.ref.id for each in garbled)
            logger.warning("backend %s: unreadable state of %s", self._backend.name, ids)
        elsewhere = Counter(
            each.stamp.node_name
            for each in seen
            if each.stamp.cluster_id == self._settings.cluster_id and not self._is_ours(each)
        )
        for node, count in elsewhere.items():
            metrics.instances_elsewhere.labels(*self._labels, node).set(count)


_MAY_EXIST = (Existence.PRESENT, Existence.UNKNOWN)


def _age(seen: Observation) -> tuple[bool, float, str]:
    made = seen.created_at
    return (made is None, made.timestamp() if made is not None else 0.0, seen.ref.id)
