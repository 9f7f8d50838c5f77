"""Lets training in only after inference has found another place, or after a bounded time. Pure.

Plain queues: Kueue has reserved quota and asks our AdmissionCheck, which says ``Ready`` once nobody
is in the way, or at the deadline, since training always wins. Topology-aware queues: Kueue does not
even reserve quota while plain pods hold the GPUs, so the same is done for what waits there. Fed by
``controllers.evacuation``; feeds its writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from vk_provider.bursting.displacement import Displaced, Home
from vk_provider.bursting.moves import Deployment, Move
from vk_provider.bursting.picture import Picture, PodView, Selection, WorkloadView
from vk_provider.bursting.relocation import relocate

PENDING, READY = "Pending", "Ready"
_TRY_AGAIN = 4
"""After so many deadlines, room is made once more for a job that a topology keeps out."""


@dataclass(frozen=True, slots=True)
class EvacuationLimits:
    """``checks`` are the names of our AdmissionChecks; ``deadline`` is how long training is held,
    in seconds; ``topology``: also make room for jobs that a topology keeps out."""

    checks: frozenset[str] = frozenset()
    deadline: float = 600.0
    topology: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """One look at everything. ``begun`` is what the last plan had of it; ``also_leaving`` are pods
    that are to go for another reason, such as coming home."""

    picture: Picture
    deployments: Sequence[Deployment]
    now: datetime
    begun: Mapping[str, datetime] = field(default_factory=dict)
    also_leaving: Sequence[PodView] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What one AdmissionCheck of one Workload is to say."""

    workload: WorkloadView
    check: str
    state: str
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written now. ``leaving`` are the UIDs of the pods that are asked to go."""

    answers: tuple[Answer, ...] = ()
    moves: tuple[Move, ...] = ()
    leaving: frozenset[str] = frozenset()
    begun: Mapping[str, datetime] = field(default_factory=dict)
    """Since when room is made for jobs that no AdmissionCheck keeps the time of, by their UID."""
    is_room_unnoticed: bool = False
    """Whether a job that a topology keeps out would fit now: Kueue does not see pods leave."""


@dataclass(slots=True)
class _Wishes:
    """Who has to go for whom, as it adds up over all waiting jobs."""

    leaving: dict[str, PodView] = field(default_factory=dict)
    homeward: frozenset[str] = frozenset()
    hurried: set[str] = field(default_factory=set)
    answers: list[Answer] = field(default_factory=list)
    begun: dict[str, datetime] = field(default_factory=dict)
    is_room_unnoticed: bool = False


def plan(look: Look, selection: Selection, limits: EvacuationLimits) -> Plan:
    """Everything that is to be written now."""
    movable = {uid for each in look.deployments for uid in each.revisions}
    homeward = {pod.uid: pod for pod in look.also_leaving}
    wishes = _Wishes(dict(homeward), frozenset(homeward))
    home = Home(look.picture, selection)
    for workload in waiting(look.picture, selection, limits):
        since = _since(workload, limits, look)
        late = look.now - since >= timedelta(seconds=limits.deadline)
        if late and not workload.has_quota:
            # It is not let in at a deadline, so making room for it ends there.
            wishes.begun[workload.uid] = since
            continue
        displaced = home.admit(workload)
        leaving = [pod for pod in displaced.leaving if _owner_uid(pod) in movable]
        _wish(wishes, workload, leaving, since, late=late)
        wishes.answers += _answers(workload, limits, displaced, leaving, late=late)
        is_free = displaced.fits and not (displaced.leaving or displaced.ending)
        wishes.is_room_unnoticed |= is_free and not workload.has_quota
        if not late and (leaving or displaced.ending):
            break  # one job at a time: whoever is behind may find home quite different
    moves = [move for each in look.deployments for move in _moves(each, look, wishes)]
    return Plan(
        answers=tuple(wishes.answers),
        moves=tuple(moves),
        leaving=frozenset(wishes.leaving),
        begun=wishes.begun,
        is_room_unnoticed=wishes.is_room_unnoticed,
    )


def _wish(
    wishes: _Wishes,
    workload: WorkloadView,
    leaving: Sequence[PodView],
    since: datetime,
    *,
    late: bool,
) -> None:
    wishes.leaving.update((pod.uid, pod) for pod in leaving)
    if late:
        wishes.hurried.update(pod.uid for pod in leaving)
    if leaving and not workload.has_quota:
        wishes.begun[workload.uid] = since


def waiting(picture: Picture, selection: Selection, limits: EvacuationLimits) -> list[WorkloadView]:
    """The jobs that somebody may have to make room for, the first first."""
    found = [
        workload
        for workload in picture.workloads or ()
        if workload.is_waiting
        and selection.is_training_workload(workload)
        and (_asked(workload, limits) or _is_kept_out(workload, limits))
    ]
    return sorted(found, key=lambda w: (-w.priority, w.created_at is None, w.created_at, w.uid))


def _asked(workload: WorkloadView, limits: EvacuationLimits) -> list[str]:
    if not workload.has_quota:
        return []
    return sorted(
        name
        for name, state in workload.checks.items()
        if name in limits.checks and state == PENDING
    )


def _is_kept_out(workload: WorkloadView, limits: EvacuationLimits) -> bool:
    """Kueue says so in words alone: ``topology "host" doesn't allow to fit any of 2 pod(s)``."""
    return limits.topology and not workload.has_quota and "topology" in workload.pending_why


def _since(workload: WorkloadView, limits: EvacuationLimits, look: Look) -> datetime:
    """Since when this job is held for others' sake. A check keeps its time; else we do."""
    asked = [workload.checks_since.get(name) for name in _asked(workload, limits)]
    told = [one for one in asked if one is not None]
    if told:
        return min(told)
    since = look.begun.get(workload.uid, look.now)
    over = look.now - since >= timedelta(seconds=limits.deadline * _TRY_AGAIN)
    return look.now if over else since


def _answers(
    workload: WorkloadView,
    limits: EvacuationLimits,
    displaced: Displaced,
    leaving: Sequence[PodView],
    *,
    late: bool,
) -> Iterator[Answer]:
    state, message = _verdict(limits, displaced, leaving, late=late)
    for name in _asked(workload, limits):
        yield Answer(workload, name, state, message)


def _verdict(
    limits: EvacuationLimits, displaced: Displaced, leaving: Sequence[PodView], *, late: bool
) -> tuple[str, str]:
    if not displaced.fits:
        return READY, "home can't hold this job whoever makes room: nobody was asked to"
    fixed = len(displaced.leaving) - len(leaving)
    lost = f"; {fixed} of no Deployment will be preempted" if fixed else ""
    if not leaving and not displaced.ending:
        return READY, f"nobody is in the way{lost}"
    if late:
        return READY, (
            f"the deadline of {limits.deadline:g} s has passed with {len(leaving)} inference pods"
            f" in the way: they will be preempted{lost}"
        )
    if not leaving:
        return PENDING, f"waiting for {len(displaced.ending)} inference pods to end{lost}"
    return PENDING, f"waiting for {len(leaving)} inference pods to find another place{lost}"


def _moves(deployment: Deployment, look: Look, wishes: _Wishes) -> Iterator[Move]:
    pods = [
        pod
        for pod in look.picture.pods
        if _owner_uid(pod) in deployment.revisions and not pod.is_over
    ]
    leaving = [pod.uid for pod in pods if pod.uid in wishes.leaving]
    if leaving or deployment.has_annotation:
        hurry = any(uid in wishes.hurried for uid in leaving)
        homeward = wishes.homeward.issuperset(leaving)
        yield from relocate(deployment, pods, leaving, look.now, hurry=hurry, homeward=homeward)


def _owner_uid(pod: PodView) -> str:
    return pod.owner.uid if pod.owner is not None else ""
