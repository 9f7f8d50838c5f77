"""The budget's part of the door: closed before the money is gone, open again when it fits.

Where all that is for rent costs money the door closes as soon as nothing may be let in any more;
where something is free it stays open for that, and a pod that finds only what is too dear is told.
Fed by ``loops.threshold`` and ``loops.preparation`` (prices); acts on ``node.door``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from vk_provider.loops.spending import Spending
from vk_provider.node.door import Door
from vk_provider.placement.needs import usable_price
from vk_provider.placement.spent import NODE
from vk_provider.pods.stimuli import Candidate
from vk_provider.pods.types import Offer


class MoneyDoor:
    """What money does to one node's door."""

    def __init__(self, door: Door, spending: Spending) -> None:
        self._door = door
        self._spending = spending
        self._priced: set[str] = set()
        self._need: tuple[Candidate, ...] = ()

    def note_prices(self, backend: str, offers: Sequence[Offer]) -> None:
        """Whether all that a backend offers costs money."""
        unpriced = self._spending.budget.limits.unpriced_usd_per_hour
        prices = [usable_price(each) for each in offers]
        if all((unpriced if price is None else price) > 0 for price in prices):
            self._priced.add(backend)
        else:
            self._priced.discard(backend)

    def exhausted(self, left: Collection[Candidate], message: str) -> bool:
        """A pod of the default need has only these left: if money alone keeps them from it the door
        closes, until one of them fits. Whether it did."""
        if not left or not self._is_over_for_all(left):
            return False
        self._need = tuple(left)
        self._door.over_budget(message)
        return True

    def look(self) -> None:
        """Take in what was spent, and that a new day may have begun."""
        is_all_priced = self._priced and self._priced.issuperset(self._door.backends)
        closed = self._spending.closed() if is_all_priced else ""
        if closed:
            self._door.over_budget(closed)
        elif not (self._need and self._is_over_for_all(self._need)):
            self._need = ()
            self._door.over_budget(None)

    def _is_over_for_all(self, candidates: Iterable[Candidate]) -> bool:
        """Whether the node's own caps keep all of these out, whichever namespace asks."""
        return all(self._spending.over(each, NODE) for each in candidates)
