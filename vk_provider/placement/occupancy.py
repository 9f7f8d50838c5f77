"""How many instances are, or are about to be, at each place: what ``spread`` evens out.

A pod counts from its ranking on, at its first choice: fifty pods that are ranked in the same moment
must not all see the same empty place. Pure. Fed by ``loops.preparation`` and
``loops.pod_accounts``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from vk_provider.placement.needs import Place
from vk_provider.pods.types import PodUID


@dataclass(slots=True)
class Occupancy:
    """One place per pod."""

    _places: dict[PodUID, Place] = field(default_factory=dict)
    _counts: Counter[Place] = field(default_factory=Counter)

    def take(self, uid: PodUID, place: Place) -> None:
        """The pod is here now, and nowhere else."""
        if self._places.get(uid) == place:
            return
        self.leave(uid)
        self._places[uid] = place
        self._counts[place] += 1

    def leave(self, uid: PodUID) -> None:
        """The pod has no instance any more, and wants none."""
        place = self._places.pop(uid, None)
        if place is None:
            return
        self._counts[place] -= 1
        if not self._counts[place]:
            del self._counts[place]

    def counts(self, besides: PodUID | None = None) -> Mapping[Place, int]:
        """Pods by place, ``besides`` one of them."""
        own = self._places.get(besides) if besides is not None else None
        if own is None:
            return self._counts
        return Counter({**self._counts, own: self._counts[own] - 1})
