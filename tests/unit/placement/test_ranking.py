"""In which order offers are tried, and why."""

from __future__ import annotations

import math
from typing import Any

import pytest

from vk_provider.placement.needs import Exclusion, Place
from vk_provider.placement.ranking import Circumstances, Policy, Ranking, rank
from vk_provider.pods.types import Candidate, Offer, PlacementHints, Stock

L40S = Offer("l40s", gpu_type="L40S", gpu_memory_gib=48, data_center="EU", usd_per_hour=1.0)
A100 = Offer("a100", gpu_type="A100", gpu_memory_gib=80, data_center="US", usd_per_hour=2.0)
CPU = Offer("cpu")
ANY = PlacementHints()


def ranked(*offers: Offer, hints: PlacementHints = ANY, around: Circumstances) -> Ranking:
    """Offers of one backend."""
    return rank(hints, [("b", offer) for offer in offers], 0, around)


def ids(*offers: Offer, hints: PlacementHints = ANY, **around: Any) -> list[str]:
    """The offers' ids in their order."""
    found = ranked(*offers, hints=hints, around=Circumstances(**around))
    return [candidate.offer.id for candidate in found.candidates]


def test_cheapest_first_or_as_configured() -> None:
    """The node's policy decides between equals."""
    assert ids(A100, L40S) == ["l40s", "a100"]
    assert ids(A100, L40S, policy=Policy.PRIORITY) == ["a100", "l40s"]


@pytest.mark.parametrize("price", [None, math.nan, math.inf, -1.0])
def test_offers_without_a_price_come_after_those_with_one(price: float | None) -> None:
    """In the order of the document among themselves; a price that makes no sense is none."""
    odd = Offer("odd", usd_per_hour=price)
    assert ids(CPU, odd, A100) == ["a100", "cpu", "odd"]
    assert ids(A100, Offer("free", usd_per_hour=0.0)) == ["free", "a100"]


def test_spread_goes_where_fewest_run_then_by_price() -> None:
    """Counted by backend and data centre."""
    running = {Place("b", "EU"): 2, Place("b", "US"): 1, Place("other", "US"): 9}
    assert ids(L40S, A100, policy=Policy.SPREAD, running=running) == ["a100", "l40s"]
    assert ids(A100, L40S, policy=Policy.SPREAD) == ["l40s", "a100"]


def test_fastest_start_goes_by_what_was_seen_then_by_price() -> None:
    """What was never seen to start comes last."""
    starts = {("b", "L40S"): 90.0, ("b", "A100"): 30.0}.get
    around = Circumstances(Policy.FASTEST_START, starts=lambda *key: starts(key))
    found = ranked(L40S, CPU, A100, around=around).candidates
    assert [each.offer.id for each in found] == ["a100", "l40s", "cpu"]
    assert ids(A100, L40S, policy=Policy.FASTEST_START) == ["l40s", "a100"]


def test_the_pods_own_order_beats_the_policy() -> None:
    """A list of GPU types is an order of preference, and excludes all others."""
    hints = PlacementHints(gpu_types=("A100", "L40S"))
    assert ids(L40S, A100, CPU, hints=hints) == ["a100", "l40s"]
    hints = PlacementHints(gpu_types=("A100",), any_gpu=True)
    assert ids(L40S, A100, CPU, hints=hints) == ["a100", "l40s"]


def test_an_ordinal_goes_where_its_predecessor_ran() -> None:
    """The same data centre, then the same backend, then any."""
    offers = [("dear", A100), ("dear", L40S), ("b", Offer("cheap", usd_per_hour=0.1))]
    around = Circumstances(predecessor=Place("dear", "US"))
    found = rank(ANY, offers, 0, around).candidates
    assert [each.offer.id for each in found] == ["a100", "l40s", "cheap"]
    assert [each.reason for each in found] == [
        "where its predecessor ran, 2 USD/h",
        "its predecessor's backend, 1 USD/h",
        "0.1 USD/h",
    ]


def test_what_is_said_to_be_sold_out_is_tried_last() -> None:
    """A level of stock is a hint, never a promise: last, not never."""
    gone = Offer("gone", usd_per_hour=0.1, stock=Stock.NONE)
    found = ranked(gone, A100, around=Circumstances()).candidates
    assert [each.offer.id for each in found] == ["a100", "gone"]
    assert found[1].reason == "said to be sold out, so tried last, 0.1 USD/h"


@pytest.mark.parametrize(
    ("around", "reason"),
    [
        (Circumstances(), "1 USD/h"),
        (Circumstances(Policy.PRIORITY), "the order of b"),
        (Circumstances(Policy.SPREAD), "0 instances there"),
        (Circumstances(Policy.SPREAD, {Place("b", "EU"): 1}), "1 instance there"),
        (Circumstances(Policy.FASTEST_START), "no start was seen yet"),
        (
            Circumstances(Policy.FASTEST_START, starts=lambda *_: 41.6),
            "starts within 42 s as a rule",
        ),
    ],
)
def test_each_choice_says_why_it_stands_there(around: Circumstances, reason: str) -> None:
    """In the words of the policy."""
    assert ranked(L40S, around=around).candidates[0].reason == reason
    wishes = PlacementHints(gpu_types=("A100", "L40S"))
    [candidate] = ranked(L40S, hints=wishes, around=around).candidates
    assert candidate.reason == f"wish 2 of the pod, {reason}"


def test_a_missing_price_is_said() -> None:
    """A reason is a fact, also where it is a gap."""
    assert ranked(CPU, around=Circumstances()).candidates[0].reason == "no price is known"


def test_a_reason_makes_no_other_choice() -> None:
    """What was tried is remembered by backend and offer."""
    assert Candidate("b", CPU, "one") == Candidate("b", CPU, "two")


def test_what_is_barred_is_left_out_with_its_reason() -> None:
    """Cooled down, or no money for it."""

    def barred(candidate: Candidate) -> tuple[Exclusion, str] | None:
        is_dear = candidate.offer is A100
        return (Exclusion.BUDGET, "1.00 USD/h is left") if is_dear else None

    found = ranked(A100, L40S, around=Circumstances(barred=barred))
    assert [each.offer.id for each in found.candidates] == ["l40s"]
    assert [(each.offer.id, each.why) for each in found.refused] == [("a100", Exclusion.BUDGET)]
    assert found.shortage == ""


def test_an_empty_ranking_says_why() -> None:
    """Counted by what excluded, each with the fact of the cheapest offer."""
    hints = PlacementHints(gpu_types=("L40S",), max_usd_per_hour=0.5)
    found = ranked(L40S, A100, CPU, hints=hints, around=Circumstances())
    assert found.shortage == (
        "no offer is left: excluded 2 by vk-provider.dev/gpu-types (it is A100), "
        "1 by vk-provider.dev/max-price (it costs 1 USD/h, at most 0.5 USD/h is allowed)"
    )
    assert rank(hints, []).shortage == "no backend offers anything for this pod"
