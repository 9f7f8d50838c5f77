"""The offers of a node's backends in one order."""

from __future__ import annotations

import pytest

from vk_provider.offline.node_ranking import never_affordable, ranked
from vk_provider.placement.budget import BudgetLimits, Caps
from vk_provider.placement.needs import Exclusion, Refused
from vk_provider.placement.ranking import Policy
from vk_provider.pods.types import Offer, PlacementHints

DEAR = Offer("dear", gpu_type="H100", usd_per_hour=3.0)
CHEAP = Offer("cheap", gpu_type="L4", usd_per_hour=0.5)
FREE = Offer("free")


def test_backends_are_ranked_together() -> None:
    """By the node's policy and the pod's own order; what was left out stays so."""
    out = Refused("b", FREE, Exclusion.PRICE, "it costs an unknown price")
    offers = [("a", DEAR), ("b", CHEAP)]
    found = ranked("n", Policy.CHEAPEST, PlacementHints(), offers, [out])
    assert [(each.backend, each.reason) for each in found.candidates] == [
        ("b", "0.5 USD/h"),
        ("a", "3 USD/h"),
    ]
    assert (found.node, found.policy, found.refused) == ("n", Policy.CHEAPEST, (out,))
    wishes = PlacementHints(gpu_types=("H100", "L4"), max_usd_per_hour=0.1)
    order = ranked("n", Policy.CHEAPEST, wishes, offers, []).candidates
    assert [each.backend for each in order] == ["a", "b"]


@pytest.mark.parametrize(
    ("limits", "left_out"),
    [
        (BudgetLimits(), []),
        (BudgetLimits(Caps(usd_per_hour=1.0)), ["dear"]),
        (BudgetLimits(Caps(usd_per_day=0.3)), ["dear"]),
        (BudgetLimits(namespaces={"team": Caps(usd_per_hour=0.1)}), ["dear", "cheap"]),
        (BudgetLimits(namespaces={"other": Caps(usd_per_hour=0.1)}), []),
    ],
)
def test_what_never_fits_into_the_budget_is_left_out(
    limits: BudgetLimits, left_out: list[str]
) -> None:
    """What is free always fits."""
    found = list(never_affordable(limits, "team", "b", [DEAR, CHEAP, FREE]))
    assert [each.offer.id for each in found] == left_out
    assert all(each.why is Exclusion.BUDGET and "has" in each.message for each in found)
