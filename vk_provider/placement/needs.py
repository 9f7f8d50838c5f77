"""What a pod needs of an offer, and in which words an offer is left out.

Fed by a pod's wishes (its ``vk-provider.dev/*`` annotations) and its GPU count; feeds
:mod:`.ranking`. A wish about a fact that a backend does not tell is not met: an unknown price is
no low price, and an unknown place is no promised one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from vk_provider.pods.types import IMPLICIT_OFFER, Offer, PlacementHints

_PREFIX = "vk-provider.dev/"


class Exclusion(StrEnum):
    """Why an offer is left out, as one word for tests, metrics and tables."""

    BACKEND = "backend"
    GPU_TYPE = "gpu-type"
    GPU_COUNT = "gpu-count"
    GPU_MEMORY = "gpu-memory"
    RESIDENCY = "data-center"
    PRICE = "max-price"
    COOLED_DOWN = "cooled-down"
    BUDGET = "budget"

    @property
    def words(self) -> str:
        """What a person can change about it: the annotation, where there is one."""
        return _WORDS.get(self, str(self))


_WORDS = {
    Exclusion.BACKEND: _PREFIX + "backends",
    Exclusion.GPU_TYPE: _PREFIX + "gpu-types",
    Exclusion.GPU_COUNT: "the number of GPUs",
    Exclusion.GPU_MEMORY: _PREFIX + "min-gpu-memory",
    Exclusion.RESIDENCY: _PREFIX + "data-centers",
    Exclusion.PRICE: _PREFIX + "max-price",
    Exclusion.COOLED_DOWN: "a cool-down",
    Exclusion.BUDGET: "the budget",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A backend and its data centre; None where the backend has none, or picks one itself."""

    backend: str
    data_center: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """An offer that is left out. ``message`` is the fact behind ``why``, for a person."""

    backend: str
    offer: Offer
    why: Exclusion
    message: str


def usable_price(offer: Offer) -> float | None:
    """USD per hour; None where there is none, or none that makes sense (NaN, infinite, below 0).
    A price of 0 is one: the machine is paid for already."""
    price = offer.usd_per_hour
    return price if price is not None and 0 <= price < math.inf else None


def refusal(
    hints: PlacementHints, backend: str, offer: Offer, gpu_count: int = 0
) -> tuple[Exclusion, str] | None:
    """The first of the pod's needs that this offer does not meet, with the fact; None if all."""
    if hints.backends and backend not in hints.backends:
        return Exclusion.BACKEND, f"it is {backend}"
    return _wrong_gpus(hints, offer, gpu_count) or _elsewhere(hints, offer) or _dear(hints, offer)


def _wrong_gpus(
    hints: PlacementHints, offer: Offer, gpu_count: int
) -> tuple[Exclusion, str] | None:
    is_named = not hints.gpu_types or offer.gpu_type in hints.gpu_types
    if not is_named and not (hints.any_gpu and offer.gpu_type is not None):
        return Exclusion.GPU_TYPE, f"it is {offer.gpu_type or 'of no known type'}"
    # An offer without a count is one that fits everything.
    if 0 < offer.gpu_count < gpu_count:
        return Exclusion.GPU_COUNT, f"it has {offer.gpu_count} of {gpu_count}"
    wanted, has = hints.min_gpu_memory_gib, offer.gpu_memory_gib
    if wanted is not None and (has or 0) < wanted:
        shown = "an unknown amount" if has is None else f"{has} GiB"
        return Exclusion.GPU_MEMORY, f"it has {shown}, {wanted} GiB are needed"
    return None


def _elsewhere(hints: PlacementHints, offer: Offer) -> tuple[Exclusion, str] | None:
    """Where the backend picks the data centre it is sent the pod's list, and keeps to it. One
    without a catalogue knows no data centres, so it can promise none."""
    if not hints.data_centers or offer.data_center in hints.data_centers:
        return None
    if offer.data_center is not None:
        return Exclusion.RESIDENCY, f"it is in {offer.data_center}"
    if offer.id == IMPLICIT_OFFER.id:
        return Exclusion.RESIDENCY, "its backend does not say where it is"
    return None


def _dear(hints: PlacementHints, offer: Offer) -> tuple[Exclusion, str] | None:
    most, price = hints.max_usd_per_hour, usable_price(offer)
    if most is None or (price is not None and price <= most):
        return None
    shown = "an unknown price" if price is None else f"{price:.4g} USD/h"
    return Exclusion.PRICE, f"it costs {shown}, at most {most:.4g} USD/h is allowed"
