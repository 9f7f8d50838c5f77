"""Which pods come home by a replacement that is Ready before they go. Pure.

The descheduler breaks before it makes; with ``homecoming.surge`` a Deployment's pods are moved by
:mod:`.relocation` instead while the gate of their node says ``return``: the replacements can only
land at home then. What has begun is finished under ``hold`` as well, since its replacements hold
the slots that may have been missed. Fed by :mod:`.picture` and :mod:`.moves`; feeds
:mod:`.evacuation`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from vk_provider.bursting.limits import HomecomingLimits
from vk_provider.bursting.moves import LAST_COST, Deployment, Phase, Relocation
from vk_provider.bursting.picture import Picture, PodView, Selection, VirtualNode

HOLD, RETURN = "hold", "return"


def coming_home(
    picture: Picture,
    deployments: Sequence[Deployment],
    selection: Selection,
    limits: HomecomingLimits,
    spare_slots: int,
) -> list[PodView]:
    """The pods that are to be moved now: those on their way already, then the dearest.

    ``spare_slots`` are those that home has free beside the replacements that hold one.
    """
    outside = _outside(picture, selection, {RETURN})
    leaving = _outside(picture, selection, {RETURN, HOLD})
    moving: list[PodView] = []
    fresh: list[list[PodView]] = []
    for deployment in deployments:
        state = deployment.relocation
        if state is None:
            mine = _owned(outside, deployment)
            fresh.append(mine[: limits.max_in_flight_per_workload])
        elif state.homeward:
            moving += _on_their_way(state, _owned(leaving, deployment))
    room = min(limits.max_in_flight - len(moving), spare_slots)
    wanted = {pod.uid for group in fresh for pod in group}
    first = [pod for pod in outside if pod.uid in wanted]
    return moving + first[: max(0, room)]


def _owned(pods: Sequence[PodView], deployment: Deployment) -> list[PodView]:
    return [p for p in pods if p.owner is not None and p.owner.uid in deployment.revisions]


def _on_their_way(state: Relocation, mine: Sequence[PodView]) -> list[PodView]:
    """As many as there are replacements; those that carry the mark first."""
    marked = [pod for pod in mine if pod.deletion_cost == LAST_COST]
    if state.phase is Phase.SHRINKING:
        return marked
    others = [pod for pod in mine if pod.deletion_cost != LAST_COST]
    # An autoscaler's bounds are widened before the replicas are raised.
    return (marked + others)[: max(state.target, state.bound) - state.replicas]


def _outside(picture: Picture, selection: Selection, gates: Collection[str]) -> list[PodView]:
    """Inference behind such gates: the dearest node first, then the oldest pod."""
    order = {
        node.name: place
        for place, node in enumerate(sorted(picture.virtual, key=_dearest_first))
        if node.gate in gates
    }
    found = [
        pod
        for pod in picture.pods
        if pod.node in order
        and selection.is_inference(pod)
        and not (pod.is_over or pod.is_terminating)
    ]
    return sorted(found, key=lambda pod: (order[pod.node], pod.born, pod.uid))


def _dearest_first(node: VirtualNode) -> tuple[float, str]:
    each = (node.usd_per_hour or 0.0) / max(1, node.running)
    return -each, node.name
