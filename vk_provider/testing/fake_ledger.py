"""Who was billed for what and when: the fake service's account book.

Fed by :mod:`.fake_service`; read by tests, which ask it whether a pod was ever paid for twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from vk_provider.pods.types import PodUID
from vk_provider.testing.fake_instance import FakeInstance


@dataclass(frozen=True, slots=True)
class Bill:
    """One instance's billing interval. ``is_open``: it is billed still."""

    ref: str
    cluster_id: str
    node_name: str
    pod_uid: PodUID
    offer: str
    start: float
    stop: float
    is_open: bool
    usd_per_hour: float | None

    def usd_within(self, begin: float, end: float) -> float:
        """What it has cost between two moments."""
        seconds = max(0.0, min(self.stop, end) - max(self.start, begin))
        return (self.usd_per_hour or 0.0) * seconds / 3600

    @property
    def usd(self) -> float:
        """What it has cost so far."""
        return (self.usd_per_hour or 0.0) * (self.stop - self.start) / 3600


class Ledger:
    """Every instance that ever carried a stamp, in the order they were made."""

    def __init__(self, ended_is_free: bool) -> None:
        self._ended_is_free = ended_is_free
        self._entries: list[FakeInstance] = []

    def enter(self, instance: FakeInstance) -> None:
        """Open a bill."""
        self._entries.append(instance)

    def bills(self, now: float, pod_uid: PodUID | None = None) -> tuple[Bill, ...]:
        """All bills as they stand, or those of one pod."""
        return tuple(each for each in self._all(now) if pod_uid in (None, each.pod_uid))

    def open_bills(self, now: float) -> tuple[Bill, ...]:
        """What is billed right now."""
        return tuple(each for each in self._all(now) if each.is_open)

    def billed_twice(self, now: float) -> frozenset[PodUID]:
        """Pods that two instances were billed for at the same time: what must never happen."""
        by_pod: dict[PodUID, list[Bill]] = {}
        for bill in sorted(self._all(now), key=lambda bill: bill.start):
            by_pod.setdefault(bill.pod_uid, []).append(bill)
        return frozenset(
            uid
            for uid, bills in by_pod.items()
            if any(
                later.start < earlier.stop or earlier.is_open
                for earlier, later in itertools.pairwise(bills)
            )
        )

    def _all(self, now: float) -> Iterator[Bill]:
        for instance in self._entries:
            stamp, offer = instance.stamp, instance.offer
            if stamp is None:
                continue
            stop = instance.billed_until(now, self._ended_is_free)
            yield Bill(
                ref=instance.ref.id,
                cluster_id=stamp.cluster_id,
                node_name=stamp.node_name,
                pod_uid=stamp.pod_uid,
                offer=offer.id,
                start=instance.created_at,
                stop=stop,
                is_open=instance.is_billed(now, self._ended_is_free),
                usd_per_hour=offer.usd_per_hour,
            )
