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

from vk_provider.pods.reading import text
from vk_provider.pods.types import PodUID, Stamp
from vk_provider_runpod.diagnosis import MOST_AT_ONCE, Diagnosis, is_due
from vk_provider_runpod.observe import Remembered, remember
from vk_provider_runpod.stamp import Mark, name_prefix, read_mark

_ENDED = ("EXITED", "ERROR")


@dataclass(slots=True)
class Memory:
    """Keyed by the backend's id. ``asked_at``: when the host was last asked about one."""

    cluster_id: str
    known: dict[str, Remembered] = field(default_factory=dict)
    asked_at: dict[str, datetime] = field(default_factory=dict)

    def created(self, pod_id: str, mark: Mark) -> None:
        """An instance of ours was made: its mark is known even if a list should lose it."""
        self.known[pod_id] = Remembered(mark)

    def take(self, pods: Sequence[Mapping[str, Any]], now: datetime) -> list[Mapping[str, Any]]:
        """Learn from a complete list; gives the pods in it that are our cluster's."""
        ours: dict[str, tuple[Mapping[str, Any], Remembered]] = {}
        for pod in pods:
            mark = self._mark(pod)
            # TERMINATED is a pod that is gone for good, so it is not there.
            if mark is not None and pod.get("status") != "TERMINATED":
                pod_id = text(pod, "id")
                known = self.known.get(pod_id, Remembered(mark))
                ours[pod_id] = (pod, remember(replace(known, mark=mark), pod, now))
        self.known = {pod_id: known for pod_id, (_, known) in ours.items()}
        self.asked_at = {key: at for key, at in self.asked_at.items() if key in ours}
        return [pod for pod, _ in ours.values()]

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


def age(pod: Mapping[str, Any], now: datetime) -> timedelta:
    """How long ago it was created; zero where that can't be read."""
    try:
        created = datetime.fromisoformat(text(pod, "createdAt"))
    except ValueError:
        return timedelta(0)
    return now - created if created.tzinfo is not None else timedelta(0)
