"""The budget's part of the door: closed before the money is gone, open again when it fits.

Where all that is for rent costs money the door closes as soon as nothing may be let in any more;
where something is free it stays open for that, and a pod that finds only what is too dear is told.
Fed by ``loops.threshold`` and ``loops.preparation`` (prices); acts on ``node.door``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from vk_provider.loops.spending import Spending
from vk_provider.node.door import Door
from vk_provider.placement.needs import usable_price
from vk_provider.placement.spent import NODE
from vk_provider.pods.types import Candidate, Offer


class MoneyDoor:
    """What money does to one node's door."""

    def __init__(self, door: Door, spending: Spending) -> None:
        self._door = door
        self._spending = spending
        self._cheapest: dict[str, float] = {}
        self._need: tuple[Candidate, ...] = ()

    def note_prices(self, backend: str, offers: Sequence[Offer]) -> None:
        """What the cheapest of a backend's offers costs, of all that were ever looked at: a pod
        without a GPU may cost less than any that came so far."""
        unpriced = self._spending.budget.limits.unpriced_usd_per_hour
        prices = [usable_price(each) for each in offers]
        known = self._cheapest.get(backend, math.inf)
        costs = [unpriced if price is None else price for price in prices]
        self._cheapest[backend] = min([known, *costs])

    def exhausted(self, left: Collection[Candidate], message: str) -> bool:
        """A pod of the default need has only these left: if money alone keeps them from it the door
        closes, until one of them fits. Whether it did."""
        if not self.is_over_for(left, NODE):
            return False
        self._need = tuple(left)
        self._door.over_budget(message)
        return True

    def look(self) -> None:
        """Take in what was spent, and that a new day may have begun."""
        closed = self.closed()
        if closed:
            self._door.over_budget(closed)
        elif not self.is_over_for(self._need, NODE):
            self._need = ()
            self._door.over_budget(None)

    def closed(self) -> str:
        """Why nothing may enter, as far as is known of every backend; empty if something may."""
        if not self._cheapest or set(self._cheapest) != set(self._door.backends):
            return ""
        cheapest = min(self._cheapest.values())
        return self._spending.closed(cheapest) if 0 < cheapest < math.inf else ""

    def is_over_for(self, candidates: Collection[Candidate], namespace: str) -> bool:
        """Whether money keeps a pod of this namespace from each of these (of which there are
        some); for the node itself: whichever namespace asks."""
        return bool(candidates) and all(self._spending.over(each, namespace) for each in candidates)
