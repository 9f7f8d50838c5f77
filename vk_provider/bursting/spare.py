"""How many more pods of a shape home could take: free slots, less what training waits for. Pure.

A sum of free GPUs says nothing about a pod that wants two on one node, so every shape is counted
node by node. Fed by :mod:`.picture`; feeds :mod:`.gate` and the metrics.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from vk_provider.bursting.picture import HomeNode, Picture, PodView, Selection, may_enter
from vk_provider.taints import Toleration


@dataclass(frozen=True, slots=True)
class Supply:
    """What home has to give. ``free`` are the free GPUs of each usable node; ``shapes`` the GPUs of
    one pod, for every size of inference pod in use; ``training_waiting`` the GPUs that training
    waits for and could have; ``headroom`` slots are kept free on purpose."""

    free: tuple[int, ...] = ()
    training_waiting: int = 0
    shapes: tuple[int, ...] = (1,)
    headroom: int = 0

    @property
    def usable_nodes(self) -> int:
        """How many home nodes inference could use."""
        return len(self.free)

    def slots(self, gpus: int) -> int:
        """How many pods of this shape would fit right now."""
        return sum(free // gpus for free in self.free)

    def spare(self, gpus: int) -> int:
        """The slots that nobody waits for; below 0 where training waits for more than there is."""
        claimed = math.ceil(self.training_waiting / gpus)
        return self.slots(gpus) - claimed - self.headroom

    @property
    def least_spare(self) -> int:
        """The spare slots of the shape that has the fewest."""
        return min(self.spare(gpus) for gpus in self.shapes)


def supply(picture: Picture, selection: Selection, headroom: int = 0) -> Supply:
    """What home has to give now. Terminating pods hold their GPUs; ended ones do not."""
    inference = [pod for pod in picture.pods if selection.is_inference(pod) and not pod.is_over]
    held = _held(picture)
    home = usable_home(picture, selection, inference)
    largest = max((node.gpus for node in home), default=0)
    # What no node at home could ever hold says nothing about the room at home.
    shapes = sorted({pod.gpus for pod in inference if 0 < pod.gpus <= largest})
    return Supply(
        free=tuple(max(0, node.gpus - held[node.name]) for node in home),
        training_waiting=training_waiting(picture, selection),
        shapes=tuple(shapes) or (1,),
        headroom=headroom,
    )


def usable_home(picture: Picture, selection: Selection, inference: list[PodView]) -> list[HomeNode]:
    """The home nodes that some inference pod could use: their taints are tolerated by it."""
    kinds: set[tuple[Toleration, ...]] = {pod.tolerations for pod in inference} or {()}
    return [
        node
        for node in picture.home
        if selection.is_home(node)
        and node.is_usable
        and (not inference or any(may_enter(kind, node.taints) for kind in kinds))
    ]


def training_waiting(picture: Picture, selection: Selection) -> int:
    """The GPUs that training waits for: pods without a node, and Workloads that are not admitted.

    A Workload that is larger than all of home can never run here and holds nobody out."""
    home = sum(node.gpus for node in picture.home if selection.is_home(node))
    pods = sum(
        pod.gpus
        for pod in picture.pods
        if selection.is_training(pod) and not (pod.node or pod.is_over or pod.is_terminating)
    )
    queued = sum(
        workload.gpus
        for workload in picture.workloads or ()
        if workload.is_waiting
        and workload.gpus <= home
        and selection.is_training_workload(workload)
    )
    return pods + queued


def _held(picture: Picture) -> Counter[str]:
    held: Counter[str] = Counter()
    for pod in picture.pods:
        if pod.node and not pod.is_over:
            held[pod.node] += pod.gpus
    return held
