"""What a predecessor knew of the money, and what may have been spent between it and us.

Up to ``at`` everything is in the sums that it saved. What ran then and is listed still is reckoned
on from there; what no list shows any more is taken to have run on until that is seen: nobody was
there to end it, and a cap must not be passed by a guess. Pure. Fed by the Node's annotation; read
by :mod:`.meters`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from vk_provider.placement.readings import Reading, price_of


@dataclass(slots=True)
class Resumed:
    """``at`` None: there was no predecessor. ``rates``: what ran then, by backend and namespace."""

    at: datetime | None = None
    rates: dict[str, Mapping[str, float]] = field(default_factory=dict)

    def since(self, began: datetime) -> datetime:
        """From when on an instance is ours to reckon."""
        return began if self.at is None else max(began, self.at)

    def gone(
        self, backend: str, readings: Sequence[Reading], now: datetime
    ) -> Iterator[tuple[str, float]]:
        """At a backend's first list: what each namespace's instances cost that are gone since."""
        at, rates = self.at, self.rates.pop(backend, {})
        if at is None or now <= at:
            return
        for namespace, rate in rates.items():
            there = sum(
                price_of(each.usd_per_hour) or 0.0
                for each in readings
                if each.namespace == namespace and each.since is not None and each.since <= at
            )
            if rate > there:
                yield namespace, (rate - there) * (now - at).total_seconds() / 3600
