"""Which offers may carry a pod, and in which order."""

from __future__ import annotations

import pytest

from vk_provider.placement.ranking import Choice, rank
from vk_provider.pods.types import Offer, PlacementHints, Stock

L40S = Offer("l40s", gpu_type="L40S", gpu_memory_gib=48, data_center="EU", usd_per_hour=1.0)
A100 = Offer("a100", gpu_type="A100", gpu_memory_gib=80, data_center="US", usd_per_hour=2.0)
CPU = Offer("cpu")


def ids(hints: PlacementHints, *offers: Offer, cheapest_first: bool = True) -> list[str]:
    """The offers' ids as ranked."""
    choices = [Choice("b", offer) for offer in offers]
    ranked = rank(hints, choices, cheapest_first=cheapest_first)
    return [choice.offer.id for choice in ranked.choices]


def test_cheapest_first_or_as_configured() -> None:
    """The node's policy decides between equals."""
    assert ids(PlacementHints(), A100, L40S) == ["l40s", "a100"]
    assert ids(PlacementHints(), A100, L40S, cheapest_first=False) == ["a100", "l40s"]


def test_offers_without_a_price_come_after_those_with_one() -> None:
    """In the order of the document among themselves."""
    assert ids(PlacementHints(), CPU, Offer("other"), A100) == ["a100", "cpu", "other"]


def test_the_pods_own_order_beats_the_price() -> None:
    """A list of GPU types is an order of preference, and excludes all others."""
    hints = PlacementHints(gpu_types=("A100", "L40S"))
    assert ids(hints, L40S, A100, CPU) == ["a100", "l40s"]


def test_what_is_said_to_be_sold_out_is_tried_last() -> None:
    """A level of stock is a hint, never a promise: last, not never."""
    gone = Offer("gone", usd_per_hour=0.1, stock=Stock.NONE)
    assert ids(PlacementHints(), gone, A100) == ["a100", "gone"]


@pytest.mark.parametrize(
    ("hints", "kept"),
    [
        (PlacementHints(backends=("other",)), []),
        (PlacementHints(backends=("b",)), ["l40s", "a100"]),
        (PlacementHints(data_centers=("EU",)), ["l40s"]),
        (PlacementHints(min_gpu_memory_gib=64), ["a100"]),
        (PlacementHints(max_usd_per_hour=1.5), ["l40s"]),
    ],
)
def test_wishes_filter(hints: PlacementHints, kept: list[str]) -> None:
    """Each of the pod's annotations."""
    assert ids(hints, L40S, A100) == kept


def test_an_offer_that_leaves_the_data_centre_open_passes() -> None:
    """The backend picks one, and refuses if it can't."""
    assert ids(PlacementHints(data_centers=("EU",)), CPU) == ["cpu"]


def test_an_unknown_price_is_no_low_price() -> None:
    """It can't be promised to stay under a limit; nor is an unknown memory large."""
    assert ids(PlacementHints(max_usd_per_hour=100), CPU) == []
    assert ids(PlacementHints(min_gpu_memory_gib=1), CPU) == []


def test_an_empty_ranking_says_why() -> None:
    """Counted by the annotation that excluded."""
    choices = [Choice("b", offer) for offer in (L40S, A100, CPU)]
    hints = PlacementHints(gpu_types=("L40S",), max_usd_per_hour=0.5)
    ranked = rank(hints, choices, cheapest_first=True)
    assert ranked.shortage == (
        "no offer is left: excluded 2 by vk-provider.dev/gpu-types, 1 by vk-provider.dev/max-price"
    )
    assert rank(hints, [], cheapest_first=True).shortage == (
        "no backend offers anything for this pod"
    )
    assert rank(PlacementHints(), choices, cheapest_first=True).shortage == ""
