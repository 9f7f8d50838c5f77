"""Which pods hold a share of the node's capacity, and how much they hold together.

A pod is admitted when it passes its gates for the first time, so that of two pods that arrive
together and fit only one at a time, one gets in. Fed by ``loops.pod_workers``; read by the node's
admission.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from vk_provider.pods import desired
from vk_provider.pods.types import Json, PodUID
from vk_provider.quantities import pod_requests


class Admitted:
    """The sum of what admitted pods request, kept up to date instead of summed anew."""

    def __init__(self) -> None:
        self._requests: dict[PodUID, Mapping[str, Fraction]] = {}
        self._generations: dict[PodUID, int] = {}
        self._total: dict[str, Fraction] = {}

    def add(self, uid: PodUID, pod: Json) -> None:
        """The pod holds its requests from now on; a later version of its spec may change them."""
        generation = desired.generation(pod)
        if self._generations.get(uid) == generation:
            return
        self.remove(uid)
        try:
            requests = pod_requests(pod)
        except ValueError:
            requests = {"pods": Fraction(1)}
        self._requests[uid], self._generations[uid] = requests, generation
        for resource, amount in requests.items():
            self._total[resource] = self._total.get(resource, Fraction(0)) + amount

    def remove(self, uid: PodUID) -> None:
        """The pod holds nothing any more."""
        self._generations.pop(uid, None)
        for resource, amount in self._requests.pop(uid, {}).items():
            self._total[resource] -= amount

    def held_by_others(self, uid: PodUID) -> Mapping[str, Fraction]:
        """What all admitted pods but this one hold."""
        own = self._requests.get(uid)
        if own is None:
            return self._total
        return {name: amount - own.get(name, 0) for name, amount in self._total.items()}
