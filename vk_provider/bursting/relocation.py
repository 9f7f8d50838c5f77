"""Moves some pods of one Deployment without a Ready replica less: one step at a time. Pure.

Level-triggered: every look at the cluster gives the writes that are missing, so a write that was
lost, repeated or undone by somebody is made up for by the next look. Fed by :mod:`.evacuation` with
the pods that are to go; feeds ``controllers.evacuation``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from vk_provider.bursting.moves import (
    LAST_COST,
    Deployment,
    Move,
    Phase,
    Relocation,
    Scale,
    Scaler,
    ScaleScaler,
    SetCost,
)
from vk_provider.bursting.picture import PodView


def relocate(
    deployment: Deployment,
    pods: Sequence[PodView],
    leaving: Collection[str],
    now: datetime,
    *,
    hurry: bool = False,
    homeward: bool = False,
) -> list[Move]:
    """The writes that are missing now.

    Args:
        pods: all pods of the Deployment that did not end.
        leaving: UIDs of those that are to go; empty: whatever is under way is brought to its end.
        hurry: waiting is over: what is Ready elsewhere counts, what is not is given up.
        homeward: all that are to go are on their way home.
    """
    going = [pod for pod in pods if pod.uid in leaving and not pod.is_terminating]
    state = deployment.relocation
    if state is None:
        fresh = Relocation(
            Phase.SURGING,
            deployment.replicas,
            deployment.replicas,
            now,
            deployment.scaler,
            homeward=homeward,
        )
        return list(_begin(deployment, fresh, going, hurry=hurry))
    if state.phase is Phase.SURGING:
        return list(_surge(deployment, state, pods, going, hurry=hurry))
    return list(_shrink(deployment, state, pods, going, hurry=hurry))


def _begin(
    deployment: Deployment, fresh: Relocation, going: Sequence[PodView], *, hurry: bool
) -> Iterator[Move]:
    if deployment.has_annotation:
        yield Scale(deployment, deployment.replicas, None)  # nothing of ours can be read in it
    elif going and deployment.is_settled and not hurry:
        yield from _raise(deployment, fresh, deployment.replicas + len(going))


def _surge(
    deployment: Deployment,
    state: Relocation,
    pods: Sequence[PodView],
    going: Sequence[PodView],
    *,
    hurry: bool,
) -> Iterator[Move]:
    wanted = _wanted(deployment, state)
    if not going:
        yield from _lower(deployment, state, wanted)
        return
    target = wanted + len(going)
    missing = list(_raise(deployment, replace(state, replicas=wanted), target))
    if missing:
        yield from missing
    elif hurry or _survivors(pods, going) >= wanted:
        yield from _let_go(deployment, state, going)


def _let_go(deployment: Deployment, state: Relocation, going: Sequence[PodView]) -> Iterator[Move]:
    """Mark those that go, then lower the replicas; what a mark replaces is remembered first."""
    unmarked = [pod for pod in going if pod.deletion_cost != LAST_COST]
    costs = {pod.uid: pod.deletion_cost for pod in unmarked if pod.deletion_cost is not None}
    if not costs.keys() <= state.costs.keys():
        yield Scale(deployment, state.target, replace(state, costs={**state.costs, **costs}))
    elif unmarked:
        for pod in unmarked:
            yield SetCost(pod.namespace, pod.name, pod.uid, LAST_COST)
    else:
        yield from _lower(deployment, state, state.replicas)


def _shrink(
    deployment: Deployment,
    state: Relocation,
    pods: Sequence[PodView],
    going: Sequence[PodView],
    *,
    hurry: bool,
) -> Iterator[Move]:
    wanted = _wanted(deployment, state)
    staying = [pod for pod in pods if not pod.is_terminating]
    if len(staying) > wanted:
        return  # the ReplicaSet is at it
    if going and not hurry:
        # Somebody came to stay where it must not: once more.
        target = wanted + len(going)
        yield Scale(deployment, target, replace(state, phase=Phase.SURGING, target=target))
        return
    unmarks = list(_unmarks(state, staying))
    yield from unmarks
    if not unmarks:
        yield Scale(deployment, wanted, None)


def _wanted(deployment: Deployment, state: Relocation) -> int:
    """What the owner wants: a number that neither we nor a widened autoscaler wrote is a new
    wish of somebody's."""
    is_ours = deployment.replicas in (state.target, state.bound)
    return state.replicas if is_ours else deployment.replicas


def _survivors(pods: Sequence[PodView], going: Sequence[PodView]) -> int:
    leaving = {pod.uid for pod in going}
    return sum(
        1 for pod in pods if pod.is_ready and not pod.is_terminating and pod.uid not in leaving
    )


def _raise(deployment: Deployment, state: Relocation, target: int) -> Iterator[Move]:
    """What is missing for so many replicas. An autoscaler minds its own bounds, so these are
    widened first; before that, what they were is written down."""
    if state.scaler is not None and deployment.scaler is not None:
        wide = _wide(state.scaler, target)
        if deployment.relocation is None or state.bound != target:
            held = deployment.replicas
            yield Scale(deployment, held, replace(state, target=held, bound=target))
            return
        if deployment.scaler != wide:
            yield ScaleScaler(deployment, wide)
            return
    if (state.target, deployment.replicas) != (target, target):
        yield Scale(deployment, target, replace(state, target=target))


def _lower(deployment: Deployment, state: Relocation, wanted: int) -> Iterator[Move]:
    # First the bounds: an autoscaler would raise again what is below them.
    if state.scaler is not None and _is_widened(deployment.scaler, state.scaler, state.bound):
        yield ScaleScaler(deployment, state.scaler)
    shrinking = replace(state, phase=Phase.SHRINKING, replicas=wanted, target=wanted)
    yield Scale(deployment, wanted, shrinking)


def _is_widened(held: Scaler | None, found: Scaler, bound: int) -> bool:
    """Whether the bounds are of our making; what somebody else wrote meanwhile is his."""
    wide = _wide(found, bound)
    return (
        held is not None
        and held != found
        and found.min_replicas <= held.min_replicas <= wide.min_replicas
        and found.max_replicas <= held.max_replicas <= wide.max_replicas
    )


def _wide(scaler: Scaler, target: int) -> Scaler:
    return Scaler(scaler.name, max(scaler.min_replicas, target), max(scaler.max_replicas, target))


def _unmarks(state: Relocation, staying: Sequence[PodView]) -> Iterator[Move]:
    for pod in staying:
        if pod.deletion_cost == LAST_COST:
            yield SetCost(pod.namespace, pod.name, pod.uid, state.costs.get(pod.uid))
