"""Rules that fail by a bug stop one pod, never the loop that brought the news.

Fed by ``loops.pod_workers`` with what is to be done for a pod; a fault goes to ``loops.parking``,
and ``loops.alarms`` brings the pod back later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TypeVar

from vk_provider.loops.alarms import Alarms
from vk_provider.loops.parking import Parking
from vk_provider.loops.shell import Shell
from vk_provider.pods.slots import Record
from vk_provider.pods.types import PodUID

T = TypeVar("T")


class Guarded:
    """The guard around every rule. ``records`` are the pods as they are now."""

    def __init__(self, shell: Shell, alarms: Alarms, records: Mapping[PodUID, Record]) -> None:
        self._clock = shell.clock
        self._alarms = alarms
        self._records = records
        self._parking = Parking(shell)

    def attempt(self, record: Record, what: str, work: Callable[[], T]) -> T | None:
        """What ``work`` answers; None when it failed: the pod is then parked and woken later."""
        try:
            return work()
        except Exception as fault:  # noqa: BLE001  # A rule may fail in any way.
            latest = self._records.get(record.uid, record)
            pause = self._parking.park(latest, what, fault)
        self._alarms.set(record.uid, self._clock.now() + timedelta(seconds=pause))
        return None

    def forget(self, uid: PodUID) -> None:
        """Nothing of the pod is left."""
        self._parking.forget(uid)
