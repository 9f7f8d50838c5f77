"""Which offers could carry a pod, and in which order they are tried.

Offers are filtered by the pod's wishes and ranked by the node's policy; the core walks them.
A level of stock is a hint, never a promise: an offer said to be sold out is tried last, not never.
Fed by ``loops.preparation`` with each backend's catalogue; feeds ``pods.starting``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vk_provider.pods.types import Offer, PlacementHints, Stock


@dataclass(frozen=True, slots=True)
class Choice:
    """One offer of one backend."""

    backend: str
    offer: Offer


@dataclass(frozen=True, slots=True)
class Ranking:
    """The choices in the order to be tried. ``excluded`` counts, per reason, what was left out;
    its sentence explains an empty list."""

    choices: tuple[Choice, ...]
    excluded: tuple[tuple[str, int], ...] = ()

    @property
    def shortage(self) -> str:
        """Why there is no choice, for a person; empty where there is one."""
        if self.choices:
            return ""
        if not self.excluded:
            return "no backend offers anything for this pod"
        counts = ", ".join(f"{count} by {reason}" for reason, count in self.excluded)
        return f"no offer is left: excluded {counts}"


def rank(hints: PlacementHints, offers: Iterable[Choice], *, cheapest_first: bool) -> Ranking:
    """Filter by the pod's wishes, then sort.

    ``offers`` come in the order of the configuration, backend by backend. A list of GPU types in
    the pod's own annotation is an order of preference and beats price; sold-out offers come last.
    """
    excluded: Counter[str] = Counter()
    kept: list[Choice] = []
    for choice in offers:
        reason = _excluded_by(hints, choice)
        if reason is None:
            kept.append(choice)
        else:
            excluded[reason] += 1
    order = sorted(
        enumerate(kept), key=lambda item: _key(hints, item[1].offer, item[0], cheapest_first)
    )
    return Ranking(tuple(choice for _, choice in order), tuple(sorted(excluded.items())))


def _key(
    hints: PlacementHints, offer: Offer, position: int, cheapest_first: bool
) -> tuple[bool, int, float, int]:
    wished = _index(hints.gpu_types, offer.gpu_type)
    price = offer.usd_per_hour if cheapest_first and offer.usd_per_hour is not None else math.inf
    return (offer.stock is Stock.NONE, wished, price, position)


def _index(wishes: Sequence[str], value: str | None) -> int:
    return wishes.index(value) if value in wishes else len(wishes)


def _excluded_by(hints: PlacementHints, choice: Choice) -> str | None:
    offer = choice.offer
    if hints.backends and choice.backend not in hints.backends:
        return "vk-provider.dev/backends"
    if hints.gpu_types and offer.gpu_type not in hints.gpu_types:
        return "vk-provider.dev/gpu-types"
    if hints.data_centers and offer.data_center not in (None, *hints.data_centers):
        return "vk-provider.dev/data-centers"
    if _too_small(hints, offer):
        return "vk-provider.dev/min-gpu-memory"
    if hints.max_usd_per_hour is not None and _price(offer) > hints.max_usd_per_hour:
        return "vk-provider.dev/max-price"
    return None


def _too_small(hints: PlacementHints, offer: Offer) -> bool:
    wanted = hints.min_gpu_memory_gib
    return wanted is not None and (offer.gpu_memory_gib or 0) < wanted


def _price(offer: Offer) -> float:
    """An unknown price can't be promised to stay under a limit."""
    return math.inf if offer.usd_per_hour is None else offer.usd_per_hour
