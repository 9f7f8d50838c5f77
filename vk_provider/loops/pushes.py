"""What a backend pushes between two lists, where it can.

Pushes make pods quicker, lists make them right: a watch that breaks costs nothing but time. Fed by
``provider.watch_instances``; feeds the same mailboxes of ``loops.pod_workers`` as ``loops.relist``.
"""

from __future__ import annotations

import asyncio
import logging

from vk_provider.faults import ProviderError
from vk_provider.loops.backend import Backend
from vk_provider.loops.belonging import Belonging
from vk_provider.loops.pod_workers import PodWorkers
from vk_provider.loops.shell import Shell
from vk_provider.pods.stimuli import Observed
from vk_provider.pods.types import Observation
from vk_provider.provider import SupportsWatch

logger = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS = 60.0
"""Between two tries of a watch that breaks at once."""
MOST_DOUBLINGS = 6


class Pushes:
    """The ear at one backend."""

    def __init__(
        self, backend: Backend, belonging: Belonging, workers: PodWorkers, shell: Shell
    ) -> None:
        self._backend = backend
        self._belonging = belonging
        self._workers = workers
        self._shell = shell
        self._said = ""

    async def run(self) -> None:
        """Take what the backend pushes, until cancelled; a broken stream is opened again, ever
        more rarely if it breaks at once."""
        provider, failures = self._backend.provider, 0
        if not isinstance(provider, SupportsWatch):
            return
        while True:
            begun = self._shell.clock.steady()
            await self._follow(provider)
            has_lasted = self._shell.clock.steady() - begun >= LONGEST_PAUSE_SECONDS
            failures = 0 if has_lasted else min(failures + 1, MOST_DOUBLINGS)
            pause = min(2.0**failures, LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(pause * (0.5 + self._shell.jitter() / 2))

    async def _follow(self, provider: SupportsWatch) -> None:
        name = self._backend.name
        try:
            async for seen in provider.watch_instances():
                self._take(seen)
        except ProviderError as fault:
            if self._is_news(fault):
                logger.warning("backend %s: its watch broke: %s", name, fault)
        except Exception as fault:  # A bug in a provider's watch; the lists go on.
            if self._is_news(fault):
                logger.exception("backend %s: its watch failed", name)

    def _is_news(self, fault: Exception) -> bool:
        before, self._said = self._said, repr(fault)
        return before != self._said

    def _take(self, seen: Observation) -> None:
        """A push about the instance of a pod that we know. Orphans and doubles are the lists'
        business: a push tells of one instance and nothing of the others."""
        record = self._workers.records.get(seen.stamp.pod_uid)
        if not self._belonging.is_ours(seen) or record is None or record.pod is None:
            return
        if record.ref in (None, seen.ref):
            at, lag = self._shell.clock.now(), self._backend.provider.traits.list_lag_seconds
            self._workers.post(seen.stamp.pod_uid, Observed(self._backend.name, seen, at, lag))
