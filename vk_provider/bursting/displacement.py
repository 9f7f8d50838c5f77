"""Which inference pods a training job would push out of home. Pure.

Kueue admits by quota and kube-scheduler preempts by priority; what they will do is worked out
beforehand, so that those pods can be elsewhere by then. Fed by :mod:`.picture`; feeds
:mod:`.evacuation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from vk_provider.bursting.picture import Picture, PodView, Selection, WorkloadView


@dataclass(frozen=True, slots=True)
class Displaced:
    """``leaving`` have to go, ``ending`` are going already. ``fits`` is False where home can't hold
    the job whoever goes: then nobody is asked to."""

    leaving: tuple[PodView, ...] = ()
    ending: tuple[PodView, ...] = ()
    fits: bool = True


@dataclass(slots=True)
class _Room:
    """One home node: GPUs free, and pods that can be made to go, the first of them first."""

    name: str
    free: int
    movable: list[PodView] = field(default_factory=list)
    taken: list[PodView] = field(default_factory=list)

    def cost(self, gpus: int, priority: int | None) -> tuple[int, int, str] | None:
        """What a pod of this size would displace here; None where it never fits."""
        missing = gpus - self.free
        if missing > sum(pod.gpus for pod in self._below(priority)):
            return None
        return max(0, missing), self.free, self.name

    def take(self, gpus: int, priority: int | None) -> None:
        """Put a pod of this size here."""
        for pod in self._below(priority):
            if self.free >= gpus:
                break
            self.movable.remove(pod)
            self.taken.append(pod)
            self.free += pod.gpus
        self.free -= gpus

    def _below(self, priority: int | None) -> list[PodView]:
        return [pod for pod in self.movable if priority is None or pod.priority <= priority]


class Home:
    """Home with the room that jobs take one after another."""

    def __init__(self, picture: Picture, selection: Selection) -> None:
        self._rooms = list(_rooms(picture, selection))
        # Training that was admitted and has no node yet comes first, and takes what it needs.
        for pod in picture.pods:
            if selection.is_training(pod) and not (pod.node or pod.is_over or pod.is_terminating):
                self._take_all([pod.gpus], pod.priority)

    def admit(self, workload: WorkloadView) -> Displaced:
        """Find room for a job, and say who is in its way. A job whose pods name no priority class
        may still have all inference make room: that it is training was said otherwise."""
        before = {room.name: len(room.taken) for room in self._rooms}
        priority = workload.priority if workload.priority_classes else None
        if not self._take_all(_sizes(workload), priority):
            return Displaced(fits=False)
        taken = [pod for room in self._rooms for pod in room.taken[before[room.name] :]]
        return Displaced(
            leaving=tuple(pod for pod in taken if not pod.is_terminating),
            ending=tuple(pod for pod in taken if pod.is_terminating),
        )

    def _take_all(self, sizes: Iterable[int], priority: int | None) -> bool:
        fits = True
        for gpus in sorted(sizes, reverse=True):
            costs = [
                (cost, room)
                for room in self._rooms
                if (cost := room.cost(gpus, priority)) is not None
            ]
            if costs:
                min(costs, key=lambda each: each[0])[1].take(gpus, priority)
            else:
                fits = False
        return fits


def _rooms(picture: Picture, selection: Selection) -> Iterator[_Room]:
    for node in picture.home:
        if not (selection.is_home(node) and node.is_fit_for_training):
            continue
        here = [pod for pod in picture.pods if pod.node == node.name and not pod.is_over]
        held = sum(pod.gpus for pod in here)
        movable = [pod for pod in here if pod.gpus > 0 and selection.is_inference(pod)]
        yield _Room(node.name, max(0, node.gpus - held), _in_turn(movable))


def _sizes(workload: WorkloadView) -> Iterator[int]:
    for gpus, count in zip(workload.pod_gpus, workload.pod_counts, strict=False):
        yield from [gpus] * (count if gpus > 0 else 0)


def _in_turn(pods: Sequence[PodView]) -> list[PodView]:
    """As the scheduler picks victims: the least important, then the youngest. Those that are ending
    come first, since they need not be asked."""
    return sorted(pods, key=lambda pod: (not pod.is_terminating, pod.priority, -pod.born))
