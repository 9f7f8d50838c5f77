"""How fast verdicts may fall: the storm guard, in the time of the loops.

The pure guard reckons in steady seconds; pods wait by the calendar. Fed by ``loops.pod_accounts``
and, for what a predecessor wrote, by ``app``.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from vk_provider.loops.shell import Shell
from vk_provider.pods.storm import StormGuard
from vk_provider.pods.types import PodUID


class Pace:
    """One storm guard and two clocks."""

    def __init__(self, guard: StormGuard, shell: Shell) -> None:
        self._guard = guard
        self._clock = shell.clock

    def held_until(self, owner: str, uid: PodUID) -> datetime | None:
        """Until when a pod of this owner is held, in calendar time."""
        steady = self._clock.steady()
        until = self._guard.held_until(owner, uid, steady)
        if until is None:
            return None
        return self._clock.now() + timedelta(seconds=until - steady)

    def enter(self, owner: str, uid: PodUID) -> None:
        """A first verdict begins."""
        self._guard.enter(owner, uid, self._clock.steady())

    def charge(self, owner: str, uid: PodUID, ago_seconds: float = 0.0) -> None:
        """Failed is written for a pod of this owner (or was, so long ago)."""
        self._guard.charge(owner, uid, self._clock.steady() - ago_seconds)

    def settle(self, uid: PodUID) -> None:
        """The pod got to Running, or is gone without a failure."""
        self._guard.settle(uid)
