"""The offers of all backends of one node, in the order in which the node would try them. Pure.

Fed by :mod:`.explain` with each backend's judgement; shown by :mod:`.explain_text`. What has been
seen at run time (starts, losses, spend) is not known here: a budget leaves out only what never
fits into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from vk_provider.placement.budget import Budget, BudgetLimits
from vk_provider.placement.meters import Meters, Now
from vk_provider.placement.needs import Exclusion, Refused, usable_price
from vk_provider.placement.ranking import Circumstances, Policy, rank
from vk_provider.pods.types import Candidate, Offer, PlacementHints

AN_ORDINARY_NOON = Now(datetime(2026, 1, 15, 12, tzinfo=UTC), 0.0)
"""Far from the end of any day or month, when less than a whole start must be paid for."""


@dataclass(frozen=True, slots=True)
class NodeRanking:
    """What one node would try for a pod, in order, and what it would not."""

    node: str
    policy: Policy
    candidates: tuple[Candidate, ...]
    refused: tuple[Refused, ...]


def ranked(
    node: str,
    policy: Policy,
    hints: PlacementHints,
    offers: Iterable[tuple[str, Offer]],
    refused: Sequence[Refused],
) -> NodeRanking:
    """All that fits the pod, over all backends of the node; ``refused`` are those that did not."""
    wishes = PlacementHints(gpu_types=hints.gpu_types, any_gpu=hints.any_gpu)
    ranking = rank(wishes, offers, 0, Circumstances(policy))
    return NodeRanking(node, policy, ranking.candidates, (*refused, *ranking.refused))


def never_affordable(
    limits: BudgetLimits, namespace: str, backend: str, offers: Sequence[Offer]
) -> Iterator[Refused]:
    """Offers that would not fit into an untouched budget."""
    budget = Budget(limits, Meters())
    for offer in offers:
        price = usable_price(offer)
        why = budget.over(price, namespace, AN_ORDINARY_NOON) if price else ""
        if why:
            yield Refused(backend, offer, Exclusion.BUDGET, why)
