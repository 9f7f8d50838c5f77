"""The bill: which sandbox cost whom what, for every second. The judge of every leak test.

A sandbox bills from the moment it gets a machine until it ends, by GPU, cores and memory. Owners
come from its tags, so the ledger can tell whether one Kubernetes pod ever paid for two sandboxes
at once. Fed by ``model``; read over the back door and by tests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any


@dataclass(frozen=True, slots=True)
class Owner:
    """Who pays, as the tags tell; empty for somebody else's."""

    pod_uid: str = ""
    cluster_id: str = ""
    node_name: str = ""
    pod: str = ""


@dataclass(slots=True)
class Charge:
    """One stretch of time at one rate. ``end`` None means that the meter still runs."""

    instance: str
    usd_per_hour: float
    start: float
    owner: Owner
    end: float | None = None

    def seconds(self, now: float) -> float:
        """How long it has been charged."""
        return max(0.0, (now if self.end is None else self.end) - self.start)

    def covers(self, moment: float) -> bool:
        """Whether that second is on the bill."""
        return self.start <= moment and (self.end is None or moment < self.end)

    def overlap(self, other: Charge) -> float:
        """Seconds that both charges cover; infinite while both meters run."""
        ends = [charge.end for charge in (self, other) if charge.end is not None]
        return max(0.0, min(ends, default=float("inf")) - max(self.start, other.start))


@dataclass(frozen=True, slots=True)
class DoubleBilling:
    """Two sandboxes that one Kubernetes pod paid for at the same time."""

    pod_uid: str
    instances: tuple[str, str]
    seconds: float


class Ledger:
    """All charges since the simulator started; nothing is ever removed."""

    def __init__(self) -> None:
        self.charges: list[Charge] = []
        self._open: dict[str, Charge] = {}

    def open(self, instance: str, usd_per_hour: float, now: float, owner: Owner) -> None:
        """Start the meter of a sandbox."""
        charge = Charge(instance, usd_per_hour, now, owner)
        self.charges.append(charge)
        self._open[instance] = charge

    def close(self, instance: str, now: float) -> None:
        """Stop the meter of a sandbox, if one runs."""
        charge = self._open.pop(instance, None)
        if charge is not None:
            charge.end = now

    def open_intervals(self) -> list[Charge]:
        """Meters that still run; a scenario that is over must leave none of ours."""
        return list(self._open.values())

    def at(self, moment: float) -> list[Charge]:
        """Who paid for what in that second."""
        return [charge for charge in self.charges if charge.covers(moment)]

    def double_billed(self) -> list[DoubleBilling]:
        """Every pair of sandboxes that billed one pod UID at the same time."""
        by_uid: dict[str, list[Charge]] = defaultdict(list)
        for charge in self.charges:
            if charge.owner.pod_uid:
                by_uid[charge.owner.pod_uid].append(charge)
        return [
            DoubleBilling(uid, (one.instance, other.instance), one.overlap(other))
            for uid, charges in by_uid.items()
            for one, other in combinations(charges, 2)
            if one.overlap(other) > 0
        ]

    def usd(self, now: float, charges: Iterable[Charge] | None = None) -> float:
        """What the charges (all, unless given) come to."""
        chosen = self.charges if charges is None else charges
        return sum(charge.usd_per_hour * charge.seconds(now) / 3600 for charge in chosen)

    def between(self, since: float, until: float) -> dict[str, float]:
        """What each sandbox cost from one moment to another."""
        found: dict[str, float] = defaultdict(float)
        stretch = Charge("", 0.0, since, Owner(), until)
        for charge in self.charges:
            if (seconds := charge.overlap(stretch)) > 0:
                found[charge.instance] += charge.usd_per_hour * seconds / 3600
        return dict(found)

    def report(self, now: float) -> dict[str, Any]:
        """The whole bill as JSON."""
        doubles = [asdict(double) for double in self.double_billed()]
        for double in doubles:
            # JSON has no infinity: null says that both meters still run.
            double["seconds"] = None if double["seconds"] == float("inf") else double["seconds"]
        return {
            "now": now,
            "charges": [asdict(charge) for charge in self.charges],
            "open": [asdict(charge) for charge in self.open_intervals()],
            "doubleBilled": doubles,
            "usd": round(self.usd(now), 6),
        }
