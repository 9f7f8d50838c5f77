"""The bill: which instance cost whom what, for every second. The judge of every leak test.

Owners come from the stamp that an instance carries, so the ledger can tell whether one Kubernetes
pod ever paid for two instances at once. Fed by the simulated service's account; read over the back
door, by the service's own billing calls, and by tests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Generic, Self, TypeVar


@dataclass(frozen=True, slots=True)
class Owner:
    """Who pays; empty for somebody else's."""

    pod_uid: str = ""
    cluster_id: str = ""
    node_name: str = ""
    pod: str = ""

    @classmethod
    def marked(cls, marks: Mapping[str, str], keys: Sequence[str]) -> Self:
        """As an instance's env or tags tell; ``keys``: where the pod's UID, the cluster, the node,
        the pod's namespace and its name stand in them."""
        uid, cluster, node, namespace, name = (marks.get(key, "") for key in keys)
        return cls(uid, cluster, node, "/".join(filter(None, (namespace, name))))


@dataclass(slots=True)
class Charge:
    """One stretch of time at one rate. ``end`` None means that the meter still runs."""

    instance: str
    usd_per_hour: float
    start: float
    owner: Owner = Owner()
    end: float | None = None

    def seconds(self, now: float) -> float:
        """How long it has been charged."""
        return max(0.0, (now if self.end is None else self.end) - self.start)

    def overlap(self, other: Charge) -> float:
        """Seconds that both charges cover; infinite while both meters run."""
        ends = [charge.end for charge in (self, other) if charge.end is not None]
        return max(0.0, min(ends, default=float("inf")) - max(self.start, other.start))

    def usd_within(self, begin: float, end: float) -> float:
        """What it costs from one moment to another, neither of them in the future."""
        stop = end if self.end is None else min(self.end, end)
        return self.usd_per_hour * max(0.0, stop - max(self.start, begin)) / 3600

    def row(self) -> dict[str, Any]:
        """As the report shows it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class DoubleBilling:
    """Two instances that one Kubernetes pod paid for at the same time."""

    pod_uid: str
    instances: tuple[str, str]
    seconds: float


C = TypeVar("C", bound=Charge)


class Ledger(Generic[C]):
    """All charges since the simulator started; nothing is ever removed."""

    def __init__(self) -> None:
        self.charges: list[C] = []
        self._open: dict[str, C] = {}

    def open(self, charge: C) -> None:
        """Start a meter; another one of the same instance stops."""
        self.close(charge.instance, charge.start)
        self.charges.append(charge)
        self._open[charge.instance] = charge

    def close(self, instance: str, now: float) -> None:
        """Stop the meter of an instance, if one runs."""
        charge = self._open.pop(instance, None)
        if charge is not None:
            charge.end = now

    def open_intervals(self) -> list[C]:
        """Meters that still run; a scenario that is over must leave none of ours."""
        return list(self._open.values())

    def double_billed(self) -> list[DoubleBilling]:
        """Every pair of instances that billed one pod UID at the same time."""
        by_uid: dict[str, list[C]] = defaultdict(list)
        for charge in self.charges:
            if charge.owner.pod_uid:
                by_uid[charge.owner.pod_uid].append(charge)
        return [
            DoubleBilling(uid, (one.instance, other.instance), one.overlap(other))
            for uid, charges in by_uid.items()
            for one, other in combinations(charges, 2)
            if one.instance != other.instance and one.overlap(other) > 0
        ]

    def usd(self, now: float, charges: Iterable[C] | None = None) -> float:
        """What the charges (all, unless given) come to."""
        chosen = self.charges if charges is None else charges
        return sum(charge.usd_per_hour * charge.seconds(now) / 3600 for charge in chosen)

    def report(self, now: float) -> dict[str, Any]:
        """The whole bill as JSON."""
        doubles = [asdict(double) for double in self.double_billed()]
        for double in doubles:
            # JSON has no infinity: null says that both meters still run.
            double["seconds"] = None if double["seconds"] == float("inf") else double["seconds"]
        return {
            "now": now,
            "charges": [charge.row() for charge in self.charges],
            "open": [charge.row() for charge in self.open_intervals()],
            "doubleBilled": doubles,
            "usd": round(self.usd(now), 6),
        }
