"""What a pod needs of an offer."""

from __future__ import annotations

import math

import pytest

from vk_provider.placement.needs import Exclusion, refusal, usable_price
from vk_provider.pods.types import IMPLICIT_OFFER, Offer, PlacementHints

L40S = Offer(
    "l40s", gpu_type="L40S", gpu_count=1, gpu_memory_gib=48, data_center="EU", usd_per_hour=1.0
)
CPU = Offer("cpu")


@pytest.mark.parametrize(
    ("hints", "offer", "why", "message"),
    [
        (PlacementHints(backends=("other",)), L40S, Exclusion.BACKEND, "it is b"),
        (PlacementHints(gpu_types=("A100",)), L40S, Exclusion.GPU_TYPE, "it is L40S"),
        (PlacementHints(gpu_types=("A100",)), CPU, Exclusion.GPU_TYPE, "it is of no known type"),
        (
            PlacementHints(gpu_types=("A100",), any_gpu=True),
            CPU,
            Exclusion.GPU_TYPE,
            "it is of no known type",
        ),
        (
            PlacementHints(min_gpu_memory_gib=64),
            L40S,
            Exclusion.GPU_MEMORY,
            "it has 48 GiB, 64 GiB are needed",
        ),
        (
            PlacementHints(min_gpu_memory_gib=1),
            CPU,
            Exclusion.GPU_MEMORY,
            "it has an unknown amount, 1 GiB are needed",
        ),
        (PlacementHints(data_centers=("US",)), L40S, Exclusion.RESIDENCY, "it is in EU"),
        (
            PlacementHints(data_centers=("US",)),
            IMPLICIT_OFFER,
            Exclusion.RESIDENCY,
            "its backend does not say where it is",
        ),
        (
            PlacementHints(max_usd_per_hour=0.5),
            L40S,
            Exclusion.PRICE,
            "it costs 1 USD/h, at most 0.5 USD/h is allowed",
        ),
        (
            PlacementHints(max_usd_per_hour=100),
            CPU,
            Exclusion.PRICE,
            "it costs an unknown price, at most 100 USD/h is allowed",
        ),
    ],
)
def test_each_need_that_is_not_met_is_said_with_the_fact(
    hints: PlacementHints, offer: Offer, why: Exclusion, message: str
) -> None:
    """One for each of the pod's annotations; what is unknown is not met."""
    assert refusal(hints, "b", offer) == (why, message)
    assert why.words.startswith("vk-provider.dev/")


@pytest.mark.parametrize(
    "hints",
    [
        PlacementHints(),
        PlacementHints(backends=("b",)),
        PlacementHints(gpu_types=("L40S",)),
        PlacementHints(gpu_types=("A100",), any_gpu=True),
        PlacementHints(min_gpu_memory_gib=48),
        PlacementHints(data_centers=("EU", "US")),
        PlacementHints(max_usd_per_hour=1.0),
    ],
)
def test_an_offer_that_meets_the_need_passes(hints: PlacementHints) -> None:
    """Limits are inclusive."""
    assert refusal(hints, "b", L40S, gpu_count=1) is None


def test_too_few_gpus_are_too_few() -> None:
    """An offer without a count fits everything."""
    assert refusal(PlacementHints(), "b", L40S, 2) == (Exclusion.GPU_COUNT, "it has 1 of 2")
    assert refusal(PlacementHints(), "b", IMPLICIT_OFFER, 2) is None
    assert Exclusion.GPU_COUNT.words == "the number of GPUs"


def test_an_offer_that_leaves_the_data_centre_open_passes() -> None:
    """Its backend is sent the pod's list and keeps to it."""
    assert refusal(PlacementHints(data_centers=("EU",)), "b", CPU) is None


@pytest.mark.parametrize("price", [None, math.nan, math.inf, -0.01])
def test_a_price_that_makes_no_sense_is_none(price: float | None) -> None:
    """Nothing is one: the machine is paid for."""
    assert usable_price(Offer("o", usd_per_hour=price)) is None
    assert usable_price(Offer("o", usd_per_hour=0)) == 0
