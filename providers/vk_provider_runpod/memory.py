"""What one session has seen of its instances, so that equal instances look equal.

Not a cache of pods: it is bounded by the last list, holds no Kubernetes object, and losing it is
safe. What is lost with it is told in ``observe``: a restart of a container that happened while we
were away goes unnoticed.
Fed by ``provider`` with each complete list; feeds ``observe``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from vk_provider.pods.reading import mapping, text
from vk_provider.pods.types import EndCause, PodUID, Stamp
from vk_provider_runpod.avoiding import Avoiding, Spot
from vk_provider_runpod.diagnosis import MOST_AT_ONCE, Diagnosis, is_due
from vk_provider_runpod.observe import Remembered, remember
from vk_provider_runpod.stamp import Mark, name_prefix, read_mark

GOOD_LIFE = timedelta(minutes=10)
"""An instance that has run so long says that its place is good."""
_ENDED = ("EXITED", "ERROR")


@dataclass(slots=True)
class Dismissed:
    """An instance that we ended as soon as it was made: why, and until when a list that still
    shows it is only late. None: our order did not get through."""

    why: str
    is_ordered: bool
    late_until: datetime | None = None


@dataclass(slots=True)
class Memory:
    """Keyed by the backend's id. ``asked_at``: when the host was last asked about one."""

    cluster_id: str
    lag: timedelta = timedelta(0)
    known: dict[str, Remembered] = field(default_factory=dict)
    asked_at: dict[str, datetime] = field(default_factory=dict)
    avoiding: Avoiding = field(default_factory=Avoiding)
    now: float = 0.0
    """When the last list was made, in the server's seconds."""
    _dismissed: dict[str, Dismissed] = field(default_factory=dict)
    _ordered: set[str] = field(default_factory=set)
    _spots: dict[str, Spot] = field(default_factory=dict)
    _judged: set[str] = field(default_factory=set)

    def created(self, pod_id: str, mark: Mark) -> None:
        """An instance of ours was made: its mark is known even if a list should lose it."""
        self.known[pod_id] = Remembered(mark)

    def ordered(self, pod_id: str) -> None:
        """Its end was ordered by us: that it goes is no place's fault."""
        self._ordered.add(pod_id)

    def dismiss(self, pod_id: str, why: str, *, is_ordered: bool) -> None:
        """It should never have been made. While lists lag it is not there; should it live on, or
        was the order not served, it is one that has ended, which the core makes an end of."""
        self._dismissed[pod_id] = Dismissed(why, is_ordered)

    def take(self, pods: Sequence[Mapping[str, Any]], now: datetime) -> list[Mapping[str, Any]]:
        """Learn from a complete list; gives the pods in it that are our cluster's."""
        ours: dict[str, tuple[Mapping[str, Any], Remembered]] = {}
        for pod in pods:
            mark = self._mark(pod)
            # TERMINATED is a pod that is gone for good, so it is not there.
            if mark is None or pod.get("status") == "TERMINATED":
                continue
            pod_id = text(pod, "id")
            if not self._is_only_late(pod_id, now):
                known = self.known.get(pod_id, Remembered(mark))
                ours[pod_id] = (pod, remember(replace(known, mark=mark), pod, now))
        self.known = {pod_id: known for pod_id, (_, known) in ours.items()}
        self.asked_at = {key: at for key, at in self.asked_at.items() if key in ours}
        there = {text(pod, "id") for pod in pods}
        self._dismissed = {key: each for key, each in self._dismissed.items() if key in there}
        for key in self._dismissed.keys() & ours.keys():
            self.settle(key, Diagnosis(self._dismissed[key].why, EndCause.LOST))
        return [pod for pod, _ in ours.values()]

    def judge(self, pods: Sequence[Mapping[str, Any]], now: datetime) -> None:
        """Learn which places lose instances, after what a list told of ours was looked into."""
        self.now = now.timestamp()
        spots = {text(pod, "id"): _spot(pod) for pod in pods}
        for gone in self._spots.keys() - spots.keys() - self._ordered - self._judged:
            self.avoiding.failed(self._spots[gone], self.now)
        for pod in pods:
            self._judge_one(pod, now)
        self._spots = spots
        self._ordered &= spots.keys()
        self._judged &= spots.keys()

    def _judge_one(self, pod: Mapping[str, Any], now: datetime) -> None:
        pod_id, spot = text(pod, "id"), _spot(pod)
        known, started = self.known[pod_id], self.known[pod_id].started_at
        if pod_id in self._judged:
            return
        is_at_fault = known.end is None or known.end_cause is EndCause.LOST
        if known.end is not None or pod.get("status") in _ENDED:
            if is_at_fault and pod_id not in self._dismissed:
                self.avoiding.failed(spot, self.now)
        elif started is not None and now - started >= GOOD_LIFE:
            self.avoiding.worked(spot)
        else:
            return
        self._judged.add(pod_id)

    def _is_only_late(self, pod_id: str, now: datetime) -> bool:
        dismissed = self._dismissed.get(pod_id)
        if dismissed is None or not dismissed.is_ordered:
            return False
        dismissed.late_until = dismissed.late_until or now + self.lag
        return now <= dismissed.late_until

    def doubtful(self, pods: Sequence[Mapping[str, Any]], now: datetime) -> list[str]:
        """The instances whose host should be asked now why they don't start; few at a time."""
        due = [
            text(pod, "id")
            for pod in pods
            if (known := self.known[text(pod, "id")]).started_at is None
            and known.end is None
            and is_due(
                age(pod, now),
                ended=pod.get("status") in _ENDED,
                asked_at=self.asked_at.get(text(pod, "id")),
                now=now,
            )
        ]
        chosen = due[:MOST_AT_ONCE]
        self.asked_at.update(dict.fromkeys(chosen, now))
        return chosen

    def settle(self, pod_id: str, found: Diagnosis) -> None:
        """Keep why an instance never starts."""
        self.known[pod_id] = replace(self.known[pod_id], end=found.line, end_cause=found.cause)

    def _mark(self, pod: Mapping[str, Any]) -> Mark | None:
        mark = read_mark(pod)
        if mark is not None:
            return mark if mark.stamp.cluster_id == self.cluster_id else None
        if not text(pod, "name").startswith(name_prefix(self.cluster_id)):
            return None
        known = self.known.get(text(pod, "id"))
        if known is None:
            # Leaving it out would look like its death; whose it is nobody knows.
            return Mark(Stamp(self.cluster_id, "", "", "", PodUID("")), "")
        return known.mark


def _spot(pod: Mapping[str, Any]) -> Spot:
    kind = text(mapping(pod, "gpu"), "id") or text(mapping(pod, "cpu"), "id")
    return kind, text(pod, "dataCenterId")


def age(pod: Mapping[str, Any], now: datetime) -> timedelta:
    """How long ago it was created; zero where that can't be read."""
    try:
        created = datetime.fromisoformat(text(pod, "createdAt"))
    except ValueError:
        return timedelta(0)
    return now - created if created.tzinfo is not None else timedelta(0)
