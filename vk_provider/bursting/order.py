"""Whose turn it is to come home, and whether it is worth it: the most expensive node first. Pure.

Fed by :mod:`.picture`; feeds :mod:`.gate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vk_provider.bursting.limits import BreakEven
from vk_provider.bursting.picture import VirtualNode

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A virtual node that has pods to bring home. ``is_returning``: it does so already."""

    node: VirtualNode
    outside: int
    is_returning: bool = False
    may_return: bool = True
    """Whether nothing of its own keeps it from returning (a failure that is too young)."""


def price_of_a_pod(node: VirtualNode) -> float | None:
    """USD per hour of one instance; None where nothing is known or nothing is paid."""
    if not node.usd_per_hour or node.running <= 0:
        return None
    return node.usd_per_hour / node.running


def whose_turn(candidates: Sequence[Candidate]) -> str | None:
    """The node that may return now: the one that does already, else the most expensive one.

    One at a time: two would count the same free slots twice."""
    returning = [one for one in candidates if one.is_returning]
    waiting = [one for one in candidates if one.outside > 0 and one.may_return]
    ordered = sorted(returning or waiting, key=_rank)
    return ordered[0].node.name if ordered else None


def _rank(candidate: Candidate) -> tuple[float, str]:
    return -(price_of_a_pod(candidate.node) or 0.0), candidate.node.name


def loss(node: VirtualNode, gpus: int, cold_start: float, limits: BreakEven) -> str | None:
    """Why bringing a pod of this node home does not pay, in words; None if it does.

    While home is free for the expected time the remote price is saved; the move costs one cold
    start at both places and the disruption."""
    remote = price_of_a_pod(node)
    if remote is None:
        return None
    saved = limits.expected_quiet / SECONDS_PER_HOUR * remote
    both = remote + limits.home_usd_per_gpu_hour * gpus
    spent = cold_start / SECONDS_PER_HOUR * both + limits.disruption_usd
    if saved > spent:
        return None
    return f"a move saves {saved:.2f} USD and costs {spent:.2f} USD"
