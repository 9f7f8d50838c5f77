"""Which offers could carry a pod, in which order they are tried, and why.

Offers are filtered by the pod's needs and ranked by the node's policy; the core walks them.
A level of stock is a hint, never a promise: an offer said to be sold out is tried last, not never.
Fed by ``loops.preparation`` and ``offline.explain`` with each backend's catalogue; feeds
``pods.starting`` (the walk), the placement annotation and ``explain`` (the reasons).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vk_provider.placement.needs import Exclusion, Place, Refused, refusal, usable_price
from vk_provider.pods.types import Candidate, Offer, PlacementHints, Stock


class Policy(StrEnum):
    """How offers that suit a pod are ordered; the words of ``spec.placement.policy``."""

    CHEAPEST = "cheapest"
    """By price; those without one after those with one."""
    PRIORITY = "priority"
    """All offers of the first backend before any of the second, each in its own order."""
    SPREAD = "spread"
    """Where fewest instances run, by backend and data centre; then by price."""
    FASTEST_START = "fastest-start"
    """By the median start seen here, by backend and GPU type; then by price."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a ranking rests on beside the catalogue and the pod.

    ``running``: instances by place. ``starts``: the median seconds from create to running of a
    backend and GPU type, None where none was seen. ``predecessor``: where the pod before this one
    with the same ordinal ran. ``barred``: what may not be tried now (cooled down, no money), with
    its reason.
    """

    policy: Policy = Policy.CHEAPEST
    running: Mapping[Place, int] = field(default_factory=dict)
    starts: Callable[[str, str | None], float | None] = lambda backend, gpu_type: None
    predecessor: Place | None = None
    barred: Callable[[Candidate], tuple[Exclusion, str] | None] = lambda candidate: None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates in the order to be tried, and what was left out, each with its reason."""

    candidates: tuple[Candidate, ...]
    refused: tuple[Refused, ...] = ()

    @property
    def shortage(self) -> str:
        """Why there is no candidate, for a person; empty where there is one."""
        if self.candidates:
            return ""
        if not self.refused:
            return "no backend offers anything for this pod"
        counts = Counter(each.why for each in self.refused)
        hints = {each.why: each.message for each in sorted(self.refused, key=_nearness)[::-1]}
        parts = [
            f"{count} by {why.words} ({hints[why]})"
            for why, count in sorted(counts.items(), key=lambda item: item[0].words)
        ]
        return f"no offer is left: excluded {', '.join(parts)}"


def rank(
    hints: PlacementHints,
    offers: Iterable[tuple[str, Offer]],
    gpu_count: int = 0,
    around: Circumstances | None = None,
) -> Ranking:
    """Filter by the pod's needs, then sort.

    ``offers`` come in the order of the configuration, backend by backend. A list of GPU types in
    the pod's own annotation is an order of preference and beats the policy, a predecessor's place
    beats both, and sold-out offers come last.
    """
    around = around or Circumstances()
    kept: list[Candidate] = []
    refused: list[Refused] = []
    for backend, offer in offers:
        candidate = Candidate(backend, offer)
        found = refusal(hints, backend, offer, gpu_count) or around.barred(candidate)
        if found is None:
            kept.append(candidate)
        else:
            refused.append(Refused(backend, offer, *found))
    keys = {id(each): _key(hints, each, at, around) for at, each in enumerate(kept)}
    kept.sort(key=lambda each: keys[id(each)])
    return Ranking(
        tuple(Candidate(each.backend, each.offer, _reason(hints, each, around)) for each in kept),
        tuple(refused),
    )


_Key = tuple[bool, int, int, float, float, int]


def _key(hints: PlacementHints, candidate: Candidate, position: int, around: Circumstances) -> _Key:
    offer = candidate.offer
    price = usable_price(offer)
    cost = math.inf if price is None else price
    first, second = _by_policy(candidate, cost, around)
    return (
        offer.stock is Stock.NONE,
        _distance(candidate, around.predecessor),
        _wish(hints, offer),
        first,
        second,
        position,
    )


def _by_policy(candidate: Candidate, cost: float, around: Circumstances) -> tuple[float, float]:
    match around.policy:
        case Policy.CHEAPEST:
            return cost, 0.0
        case Policy.PRIORITY:
            return 0.0, 0.0  # the position decides
        case Policy.SPREAD:
            return float(around.running.get(_place(candidate), 0)), cost
    seen = around.starts(candidate.backend, candidate.offer.gpu_type)
    return math.inf if seen is None else seen, cost


def _place(candidate: Candidate) -> Place:
    return Place(candidate.backend, candidate.offer.data_center)


def _distance(candidate: Candidate, predecessor: Place | None) -> int:
    """0: where its predecessor ran; 1: the same backend elsewhere; 2: another backend."""
    if predecessor is None or _place(candidate) == predecessor:
        return 0
    return 1 if candidate.backend == predecessor.backend else 2


def _wish(hints: PlacementHints, offer: Offer) -> int:
    """The position in the pod's own list; those of its "any" come after the named ones."""
    named = hints.gpu_types
    return named.index(offer.gpu_type) if offer.gpu_type in named else len(named)


def _reason(hints: PlacementHints, candidate: Candidate, around: Circumstances) -> str:
    """In the order in which it counted."""
    offer, parts = candidate.offer, []
    if offer.stock is Stock.NONE:
        parts.append("said to be sold out, so tried last")
    if around.predecessor is not None and _distance(candidate, around.predecessor) < 2:
        same = _distance(candidate, around.predecessor) == 0
        parts.append("where its predecessor ran" if same else "its predecessor's backend")
    if offer.gpu_type in hints.gpu_types and len(hints.gpu_types) > 1:
        parts.append(f"wish {hints.gpu_types.index(offer.gpu_type) + 1} of the pod")
    parts.append(_policy_words(candidate, around))
    return ", ".join(parts)


def _policy_words(candidate: Candidate, around: Circumstances) -> str:
    price = usable_price(candidate.offer)
    match around.policy:
        case Policy.CHEAPEST:
            return "no price is known" if price is None else f"{price:.4g} USD/h"
        case Policy.PRIORITY:
            return f"the order of {candidate.backend}"
        case Policy.SPREAD:
            count = around.running.get(_place(candidate), 0)
            return f"{count} instance{'' if count == 1 else 's'} there"
    seen = around.starts(candidate.backend, candidate.offer.gpu_type)
    return "no start was seen yet" if seen is None else f"starts within {seen:.0f} s as a rule"


def _nearness(refused: Refused) -> float:
    """The one that a person could most easily let in comes first: the cheapest."""
    price = usable_price(refused.offer)
    return math.inf if price is None else price
