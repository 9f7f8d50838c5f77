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
    """How long a measurement is shown again (``young_seconds`` if there is a pod that it does not
    know), and how long a backend may take for one."""

    fresh_seconds: float = 10.0
    young_seconds: float = 1.0
    answer_seconds: float = 8.0


@dataclass(frozen=True, slots=True)
class Look:
    """One look at all backends: when, at whose pods, their usage, whether a backend failed."""

    at: float
    here: frozenset[PodUID]
    usage: NodeUsage
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
        self._last: Look | None = None

    def running_pods(self) -> Sequence[Json]:
        """The pods that have an instance, now; nobody is asked for it."""
        return self._lookup.running_pods()

    async def look(self) -> Look:
        """The present usage; those who ask at once get the same."""
        async with self._asking:
            here = frozenset(_uid(pod) for pod in self.running_pods())
            if self._last is None or not self._is_fresh(self._last, here):
                self._last = await self._measure(here)
            return self._last

    def _is_fresh(self, last: Look, here: frozenset[PodUID]) -> bool:
        age = self._clock() - last.at
        return age < (self._times.fresh_seconds if here <= last.here else self._times.young_seconds)

    async def _measure(self, here: frozenset[PodUID]) -> Look:
        backends = [each for each in self._lookup.providers() if isinstance(each, SupportsStats)]
        answers = await asyncio.gather(*map(self._ask, backends))
        measured = [each for answer in answers for each in answer or ()]
        usage = self._history.absorb(measured, here)
        return Look(self._clock(), here, usage, None in answers)

    async def _ask(self, backend: SupportsStats) -> Sequence[InstanceStats] | None:
        try:
            async with asyncio.timeout(self._times.answer_seconds):
                return await backend.read_stats()
        except (ProviderError, NotSupportedError) as fault:
            _log.warning("a backend's usage can't be read: %s", fault)
        except TimeoutError:
            _log.warning("a backend's usage took over %g s", self._times.answer_seconds)
        return None


def _uid(pod: Json) -> PodUID:
    return PodUID(text(mapping(pod, "metadata"), "uid"))
