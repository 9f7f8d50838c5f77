"""What the node's instances cost together, and whether one more fits into the budget.

What lists show counts as listed; a create that has begun is reserved until a list shows it or it
is known that nothing was made, so that many pods at once don't spend the same dollar twice.
Instances without a price count nothing: where a backend has none, capacity is the cap.
Fed by ``loops.relist`` and ``loops.pod_actions``; asked by ``loops.threshold``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from vk_provider.pods.stimuli import Candidate
from vk_provider.pods.types import PodUID


class Spending:
    """USD per hour of one node; ``limit`` None: no budget."""

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self._listed: dict[str, float] = {}
        self._reserved: dict[PodUID, float] = {}

    @property
    def left(self) -> float:
        """What may still be spent."""
        if self.limit is None:
            return math.inf
        return self.limit - sum(self._listed.values()) - sum(self._reserved.values())

    def is_over(self, candidate: Candidate) -> bool:
        """Whether this offer costs more than is left."""
        return (candidate.offer.usd_per_hour or 0.0) > self.left

    def reserve(self, uid: PodUID, candidate: Candidate) -> None:
        """A create begins."""
        if self.limit is not None and candidate.offer.usd_per_hour is not None:
            self._reserved[uid] = candidate.offer.usd_per_hour

    def release(self, uid: PodUID) -> None:
        """Nothing was made for the pod, or nothing of it is left."""
        self._reserved.pop(uid, None)

    def listed(self, backend: str, usd_per_hour: float, uids: Collection[PodUID]) -> None:
        """A complete list shows what these pods' instances cost together."""
        self._listed[backend] = usd_per_hour
        for uid in uids:
            self._reserved.pop(uid, None)

    def words(self, candidates: Iterable[Candidate]) -> str:
        """Why none of these offers may be rented; empty where money is not the reason."""
        over = [each.offer.usd_per_hour or 0.0 for each in candidates if self.is_over(each)]
        if not over or self.limit is None:
            return ""
        return (
            f"the node's budget of {self.limit:.2f} USD/h has {max(0.0, self.left):.2f} left, "
            f"and the cheapest offer costs {min(over):.2f}"
        )
