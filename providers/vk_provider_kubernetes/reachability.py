"""Whether the other cluster's API answers, as a person reads it in the log: one line per change.

Fed by ``provider`` with the outcome of every list and of the watch; rests on :mod:`.health`.
"""

from __future__ import annotations

import logging
import time

from vk_provider_kubernetes.health import Health, Pulse

logger = logging.getLogger(__name__)


class Reachability:
    """The pulse of one backend."""

    def __init__(self, backend: str, lost_after_seconds: float) -> None:
        self.pulse = Pulse()
        self._backend = backend
        self._lost_after_seconds = lost_after_seconds

    def failed(self, why: str) -> None:
        """A list or the watch failed."""
        now = time.monotonic()
        self._turn(self.pulse.failed(why, now, self._lost_after_seconds), now)

    def answered(self) -> None:
        """A list or the watch was answered."""
        self._turn(self.pulse.answered(), time.monotonic())

    def _turn(self, pulse: Pulse, now: float) -> None:
        before, self.pulse = self.pulse, pulse
        if pulse.health is not before.health and pulse.health is not Health.HEALTHY:
            logger.warning("backend %s: %s", self._backend, pulse.told(now))
