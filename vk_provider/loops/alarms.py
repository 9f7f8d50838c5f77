"""One timer per pod: when to look at it again though no news came.

Fed by ``loops.pod_workers`` (action WakeAt); calls back into it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from vk_provider.loops.clock import Clock
from vk_provider.pods.types import PodUID

SOONEST_SECONDS = 0.05


class Alarms:
    """The timers of all pods of one node."""

    def __init__(self, clock: Clock, ring: Callable[[PodUID], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._timers: dict[PodUID, asyncio.TimerHandle] = {}

    def set(self, uid: PodUID, at: datetime) -> None:
        """Ring at this time, instead of at what was set before."""
        self.drop(uid)
        delay = max(SOONEST_SECONDS, (at - self._clock.now()).total_seconds())
        self._timers[uid] = asyncio.get_running_loop().call_later(delay, self._ring, uid)

    def drop(self, uid: PodUID) -> None:
        """Don't ring for this pod."""
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """Don't ring any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
