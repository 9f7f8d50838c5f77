"""What the pods of a node use, measured at most once per ten seconds however many scrapers ask.

A backend that fails or is slow leaves the others' figures alone, and shows as a scrape error.
Fed by the lookup and providers' ``read_stats``; feeds :mod:`.stats`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vk_provider.faults import NotSupportedError, ProviderError
from vk_provider.pods.reading import mapping, text
from vk_provider.pods.types import Json, PodUID
from vk_provider.pods.usage import InstanceStats
from vk_provider.pods.usage_history import NodeUsage, UsageHistory
from vk_provider.provider import SupportsStats
from vk_provider.server.lookup import PodLookup

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UsageTimes:
    """How long a measurement is shown again, and how long a backend may take for one."""

    fresh_seconds: float = 10.0
    answer_seconds: float = 8.0


@dataclass(frozen=True, slots=True)
class Look:
    """One look at all backends: the usage, the pods it was asked for, whether one failed."""

    usage: NodeUsage
    pods: Sequence[Json]
    error: bool


class UsageReader:
    """Asks the backends, and remembers the answer for a moment."""

    def __init__(
        self,
        lookup: PodLookup,
        times: UsageTimes = UsageTimes(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lookup = lookup
        self._times = times
        self._clock = clock
        self._history = UsageHistory()
        self._asking = asyncio.Lock()
        self._taken: tuple[float, Look] | None = None

    def running_pods(self) -> Sequence[Json]:
        """The pods that have an instance; nobody is asked for it."""
        return self._lookup.running_pods()

    async def look(self) -> Look:
        """The present usage; those who ask at once get the same."""
        async with self._asking:
            if self._taken is not None and self._clock() < self._taken[0]:
                return self._taken[1]
            look = await self._measure()
            self._taken = (self._clock() + self._times.fresh_seconds, look)
            return look

    async def _measure(self) -> Look:
        backends = [each for each in self._lookup.providers() if isinstance(each, SupportsStats)]
        answers = await asyncio.gather(*map(self._ask, backends))
        pods = self._lookup.running_pods()
        here = {PodUID(text(mapping(pod, "metadata"), "uid")) for pod in pods}
        measured = [each for answer in answers for each in answer or ()]
        return Look(self._history.absorb(measured, here), pods, None in answers)

    async def _ask(self, backend: SupportsStats) -> Sequence[InstanceStats] | None:
        try:
            async with asyncio.timeout(self._times.answer_seconds):
                return await backend.read_stats()
        except (ProviderError, NotSupportedError) as fault:
            _log.warning("a backend's usage can't be read: %s", fault)
        except TimeoutError:
            _log.warning("a backend's usage took over %g s", self._times.answer_seconds)
        return None
