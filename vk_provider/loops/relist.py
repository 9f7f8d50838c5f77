"""One list per tick of one backend: observations for the pods, absences, orphans, an outage.

A list that fails, is partial or is suspiciously empty changes no pod. A list is one call for the
whole node, whatever the number of pods. Fed by ``loops.backend``; feeds ``loops.pod_workers`` and
the door. What a backend pushes between the ticks is ``loops.pushes``'.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from vk_provider.faults import DeniedError, GarbledAnswerError, ProviderError
from vk_provider.loops.backend import LIST_TIMEOUT_SECONDS, Backend
from vk_provider.loops.belonging import Belonging
from vk_provider.loops.census import Census
from vk_provider.loops.pod_workers import PodWorkers
from vk_provider.loops.shell import Shell
from vk_provider.loops.threshold import Threshold
from vk_provider.pods.slots import Existence, Record
from vk_provider.pods.stimuli import Missed, Observed, Woken
from vk_provider.pods.types import InstancePhase, InstanceRef, Observation, PodUID

logger = logging.getLogger(__name__)

SUSPICIOUS_FROM = 3
"""An empty list while so many instances were there is disbelieved at first ..."""
SUSPICIOUS_TIMES = 6
"""... and believed after so many in a row."""


@dataclass(frozen=True, slots=True)
class RelistSettings:
    """Seconds between two lists, how long lists may fail before the door closes, and after how
    long the pods of a silent backend are given up (None: never). ``siblings`` are the backends
    that may list the same instances under the same ids."""

    cluster_id: str
    node_name: str
    tick_seconds: float = 10.0
    outage_after_seconds: float = 60.0
    lost_after_seconds: float | None = None
    siblings: frozenset[str] = frozenset()


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
        self.census = Census(settings.cluster_id, settings.node_name, backend.name, shell)
        self.belonging = Belonging(backend.name, settings.siblings, self.census, workers.records)
        self._settings = settings
        self._backend = backend
        self._workers = workers
        self._threshold = threshold
        self._shell = shell
        self._failing_since: float | None = None
        self._empty = 0
        self._labels = (settings.node_name, backend.name)

    async def run(self) -> None:
        """List at every tick until cancelled; not before every pod was handed in, since an
        instance without a pod means something only then."""
        await self._workers.ready.wait()
        patience = LIST_TIMEOUT_SECONDS + 3 * self._settings.tick_seconds + 60.0
        while True:
            begun = self._shell.clock.steady()
            self._shell.beat(f"list {self._backend.name}", patience)
            if self._shell.may_act():
                await self.once()
            took = self._shell.clock.steady() - begun
            pause = self._settings.tick_seconds * (0.95 + 0.1 * self._shell.jitter())
            await asyncio.sleep(max(0.1, pause - took))

    async def once(self) -> None:
        """One list and all that follows from it."""
        started_at = self._shell.clock.now()
        try:
            self._take_list(await self._backend.list(), started_at)
        except ProviderError as fault:
            self._failed(fault.reason, str(fault) or fault.reason)
        except Exception:  # A bug in a provider is an outage of it, never the end of this loop.
            if self._failing_since is None:
                logger.exception("backend %s: the list failed", self._backend.name)
            self._failed("ProviderBug", "the provider failed; see the log")

    def _take_list(self, seen: Sequence[Observation], started_at: datetime) -> None:
        ours = [each for each in seen if self.belonging.is_ours(each)]
        if self._suspicious(ours):
            self._failed("SuspiciouslyEmpty", "the list is empty although instances were there")
            return
        strays = frozenset(each.ref for each in seen if each.stamp.is_stray)
        self._hand_out(ours, started_at, strays)
        self._report(seen, ours)
        self._good()

    def _hand_out(
        self, ours: Sequence[Observation], started_at: datetime, strays: frozenset[InstanceRef]
    ) -> None:
        name, lag = self._backend.name, self._backend.provider.traits.list_lag_seconds
        groups: dict[PodUID, list[Observation]] = defaultdict(list)
        for each in ours:
            groups[each.stamp.pod_uid].append(each)
        for uid, group in groups.items():
            kept = _keep(self._workers.records.get(uid), group)
            extras = tuple(
                each.ref
                for each in group
                if each is not kept and each.phase is not InstancePhase.DELETING
            )
            self._workers.post(uid, Observed(name, kept, started_at, lag, extras))
        missed = Missed(name, started_at, lag)
        for uid, record in list(self._workers.records.items()):
            if uid in groups or record.backend != name or not record.may_exist:
                continue
            # Any pod whose instance is not known by its id may be the one that a stray is of.
            if not strays or (record.ref is not None and record.ref not in strays):
                self._workers.post(uid, missed)

    def _suspicious(self, ours: Sequence[Observation]) -> bool:
        """Empty, though several live instances were there that nobody ordered to end."""
        expected = 0 if ours else sum(map(self._is_expected, self._workers.records.values()))
        self._empty = self._empty + 1 if expected >= SUSPICIOUS_FROM else 0
        return 0 < self._empty < SUSPICIOUS_TIMES

    def _is_expected(self, record: Record) -> bool:
        return (
            record.exists is Existence.PRESENT
            and record.backend == self._backend.name
            and record.deleted_at is None
            and record.observation is not None
        )

    def _good(self) -> None:
        if self._failing_since is not None:
            logger.info("backend %s: lists work again", self._backend.name)
        self._failing_since = None
        self._workers.surroundings.last_heard[self._backend.name] = self._shell.clock.steady()
        self._threshold.outage(self._backend.name, None)
        self._shell.metrics.backend_up.labels(*self._labels).set(1)

    def _failed(self, reason: str, message: str) -> None:
        metrics, now = self._shell.metrics, self._shell.clock.steady()
        metrics.backend_list_failures.labels(*self._labels, reason).inc()
        metrics.backend_up.labels(*self._labels).set(0)
        if reason == GarbledAnswerError.reason:
            metrics.garbled_observations.labels(*self._labels).inc()
        is_repeated = self._failing_since is not None
        if self._failing_since is None:
            self._failing_since = now
            logger.warning("backend %s: the list failed: %s", self._backend.name, message)
        # Waiting mends an outage, and no wrong key.
        is_refused = is_repeated and reason == DeniedError.reason
        if is_refused or now - self._failing_since >= self._settings.outage_after_seconds:
            self._threshold.outage(self._backend.name, message)
        lost, silence = self._settings.lost_after_seconds, self._workers.surroundings.silence
        if lost is not None and silence(self._backend.name) >= lost:
            self._let_them_look()

    def _let_them_look(self) -> None:
        for uid, record in list(self._workers.records.items()):
            if record.backend == self._backend.name and record.may_exist:
                self._workers.post(uid, Woken())

    def _report(self, seen: Sequence[Observation], ours: Sequence[Observation]) -> None:
        unconfirmed = sum(
            record.backend == self._backend.name
            and record.deleted_at is not None
            and record.may_exist
            for record in self._workers.records.values()
        )
        has_changed = self.census.take(seen, ours, unconfirmed)
        traits = self._backend.provider.traits
        self._threshold.spending.listed(self._backend.name, traits, ours)
        self._threshold.look()
        if has_changed:
            self._threshold.board.changed.set()


def _keep(record: Record | None, group: Sequence[Observation]) -> Observation:
    """Of several instances with one stamp: the one we know, else the oldest."""
    known = [each for each in group if record is not None and each.ref == record.ref]
    living = [each for each in group if each.phase is not InstancePhase.DELETING]
    return min(known or living or group, key=_age)


def _age(seen: Observation) -> tuple[bool, float, str]:
    made = seen.created_at
    return (made is None, made.timestamp() if made is not None else 0.0, seen.ref.id)
