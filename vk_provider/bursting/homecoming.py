"""Pods on their way home: how many, how long already, and where they came out. Pure.

A pod that was evicted from a virtual node is missing until its owner has made another one; that one
is on its way until it is Ready at home. Everything is read off the pods as they are, so a new
leader sees the same. Fed by :mod:`.picture`; feeds :mod:`.gate` and the metrics.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from vk_provider.bursting.picture import Picture, PodView, Selection

_CLOCK_GRAIN = timedelta(seconds=1)
"""Times of the API server are whole seconds."""


@dataclass(frozen=True, slots=True)
class Homecoming:
    """The way home at one moment. ``late`` and ``outside`` are names of pods, for people."""

    in_flight: int = 0
    most_of_one: int = 0
    """The most that are on their way for one workload."""
    late: tuple[str, ...] = ()
    """Replacements that are not Ready within the time."""
    outside: tuple[str, ...] = ()
    """Replacements that were put on a virtual node again."""
    arrived: int = 0
    """Replacements that are Ready at home."""


@dataclass(slots=True)
class _Workload:
    evicted: list[datetime] = field(default_factory=list)
    made: list[PodView] = field(default_factory=list)

    def missing(self) -> int:
        """Pods that are on their way out and whose owner has not answered yet."""
        if not self.evicted:
            return 0
        first = min(self.evicted) - _CLOCK_GRAIN
        answers = sum(1 for pod in self.made if pod.created_at and pod.created_at >= first)
        return max(0, len(self.evicted) - answers)


def homecoming(
    picture: Picture,
    selection: Selection,
    began: datetime,
    now: datetime,
    ready_within: float,
) -> Homecoming:
    """The way home since it ``began``."""
    virtual = frozenset(node.name for node in picture.virtual)
    workloads = _by_workload(picture, selection, virtual, began - _CLOCK_GRAIN)
    counts: Counter[str] = Counter()
    late, outside, arrived = [], [], 0
    for key, workload in workloads.items():
        counts[key] = workload.missing()
        for pod in workload.made:
            if pod.node in virtual:
                outside.append(f"{pod.namespace}/{pod.name}")
            elif pod.is_ready:
                arrived += 1
            else:
                counts[key] += 1
                if _is_late(pod, now, ready_within):
                    late.append(f"{pod.namespace}/{pod.name}")
    return Homecoming(
        in_flight=sum(counts.values()),
        most_of_one=max(counts.values(), default=0),
        late=tuple(sorted(late)),
        outside=tuple(sorted(outside)),
        arrived=arrived,
    )


def _by_workload(
    picture: Picture, selection: Selection, virtual: frozenset[str], began: datetime
) -> dict[str, _Workload]:
    """Evicted and new pods of each workload; a pod that nobody owns has no replacement."""
    found: dict[str, _Workload] = {}
    for pod in picture.pods:
        if pod.owner is None or pod.is_over or not selection.is_inference(pod):
            continue
        workload = found.setdefault(pod.owner.uid, _Workload())
        if pod.evicted_at is not None:
            if pod.node in virtual and pod.evicted_at >= began:
                workload.evicted.append(pod.evicted_at)
        elif pod.created_at is not None and pod.created_at >= began:
            workload.made.append(pod)
    return found


def _is_late(pod: PodView, now: datetime, ready_within: float) -> bool:
    """A pod that was Ready and is not for a moment has its time again."""
    moments = [moment for moment in (pod.created_at, pod.unready_since) if moment is not None]
    return bool(moments) and now - max(moments) > timedelta(seconds=ready_within)


def cold_start(pods: Iterable[PodView], otherwise: float) -> float:
    """The ninetieth percentile of how long these pods took from a node to Ready, in seconds.

    Only first starts can be told: a pod that was Ready, lost it and has it again counts from its
    start, too; whoever sees few pods takes ``otherwise`` as one of them."""
    found = sorted(
        (pod.ready_since - pod.scheduled_at).total_seconds()
        for pod in pods
        if pod.ready_since is not None and pod.scheduled_at is not None
    )
    return percentile(found, 0.9) if found else otherwise


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
