"""The spend of a node as one line of text, so that a restart goes on with it.

It stands in an annotation of the Node: sums of the present day and month, what ran when it was
written, and when that was. A line that can't be read is no line: what runs is then reckoned from
its own beginning. Pure. Fed by :mod:`.meters`; written by ``loops.node_heartbeat``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from vk_provider.placement.meters import Meters, Now
from vk_provider.placement.spent import NODE, Window

Amounts = Mapping[str, Mapping[str, float]]
MOST_SCOPES = 500
"""Namespaces that a line tells of, the dearest: all annotations of a Node together have 256 KiB,
and a Node whose annotations don't fit is not written at all."""


@dataclass(frozen=True, slots=True)
class Saved:
    """``spent``: by period (``2026-01``, ``2026-01-31``) and scope. ``rates``: USD per hour of
    what ran, by backend and namespace."""

    at: datetime
    spent: Amounts = field(default_factory=dict)
    rates: Amounts = field(default_factory=dict)

    def is_news(self, other: Saved | None) -> bool:
        """Whether it says anything else than that; the time alone does not count."""
        return other is None or (self.spent, self.rates) != (other.spent, other.rates)


def saved_of(meters: Meters, now: Now) -> Saved:
    """Everything up to this very moment: what was read from the meters, and what they show since.
    The next process reckons from here on."""
    spent = {key: dict(sums) for key, sums in meters.spent.saved(now.calendar).items()}
    for meter in meters.running.values():
        usd = meter.usd(now.steady)
        if usd <= 0:
            continue
        for window in Window:
            sums = spent.setdefault(window.key(now.calendar), {})
            for scope in {NODE, meter.namespace}:
                sums[scope] = sums.get(scope, 0.0) + usd
    return Saved(now.calendar, spent, meters.rates())


def render(saved: Saved) -> str:
    """The annotation's value."""
    document = {
        "at": saved.at.isoformat(timespec="milliseconds"),
        "spent": _rounded(saved.spent),
        "rates": _rounded(saved.rates),
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def parse(text: str) -> Saved | None:
    """What an earlier process wrote; None where there is none, or nothing that makes sense."""
    try:
        document = json.loads(text)
        at = datetime.fromisoformat(document["at"])
        saved = Saved(at.astimezone(UTC), _amounts(document["spent"]), _amounts(document["rates"]))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    return saved if at.tzinfo is not None else None


def _rounded(amounts: Amounts) -> dict[str, dict[str, float]]:
    return {
        key: {scope: round(usd, 6) for scope, usd in _dearest(sums)}
        for key, sums in amounts.items()
    }


def _dearest(sums: Mapping[str, float]) -> Iterable[tuple[str, float]]:
    """Some of very many; the node's own sum is always among them."""
    if len(sums) <= MOST_SCOPES:
        return sums.items()
    return sorted(sums.items(), key=lambda each: (each[0] != NODE, -each[1]))[:MOST_SCOPES]


def _amounts(found: Any) -> dict[str, dict[str, float]]:
    return {
        str(key): {str(scope): _amount(usd) for scope, usd in sums.items()}
        for key, sums in found.items()
    }


def _amount(usd: Any) -> float:
    amount = float(usd)
    if not 0 <= amount < math.inf:
        raise ValueError(f"{usd} is no amount of money")
    return amount
