"""What the node's instances cost, whether one more fits into the budget, and who must go at a cap.

The reckoning is pure (``placement.meters``, ``placement.budget``); here it gets its time, the
creates under way and its place in the metrics. A create that has begun is reserved until it is
known what became of it, so that many pods at once don't spend the same dollar twice.
Fed by ``loops.relist`` (lists), ``loops.pod_actions`` (creates and ends) and
``loops.budget_watch`` (bills); asked by ``loops.threshold`` and, through the world, by each pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from vk_provider.loops.shell import Shell
from vk_provider.placement.budget import Budget, BudgetLimits, Share
from vk_provider.placement.meters import Meters, Now
from vk_provider.placement.needs import usable_price
from vk_provider.placement.readings import Billing, Key, Reading, reading_of
from vk_provider.placement.reports import Report
from vk_provider.pods.types import Candidate, InstanceRef, Observation, PodUID
from vk_provider.provider import ProviderTraits

SETTLED_SECONDS = 3600.0
"""An hour's bill is taken as complete when the hour ended so long ago."""


class Spending:
    """The money of one node."""

    def __init__(self, limits: BudgetLimits, shell: Shell, tick_seconds: float = 10.0) -> None:
        self.budget = Budget(limits, Meters(), tick_seconds)
        self.dismissed: dict[PodUID, str] = {}
        """The pods whose instances must end so that a cap holds, each with why."""
        self._shell = shell
        self._shown = _Shown(shell)

    def over(self, candidate: Candidate, namespace: str) -> str:
        """Why this offer may not be rented for a pod of this namespace; empty if it may."""
        limits = self.budget.limits
        if not limits.any:
            return ""
        if usable_price(candidate.offer) is None and candidate.offer.usd_per_hour is not None:
            return f"its price of {candidate.offer.usd_per_hour} USD/h makes no sense"
        price = _price(candidate, self.budget.limits.unpriced_usd_per_hour)
        return self.budget.over(price, namespace, self.now()) if price > 0 else ""

    def words(self, candidates: Iterable[Candidate], namespace: str) -> str:
        """Why none of these offers may be rented; empty where money is not the reason."""
        over = [(each, self.over(each, namespace)) for each in candidates]
        prices = [usable_price(each.offer) or 0.0 for each, why in over if why]
        if not prices:
            return ""
        cheapest = min(prices)
        why = next(why for each, why in over if why and (usable_price(each.offer) or 0) == cheapest)
        return f"{why}, and the cheapest offer costs {cheapest:.2f} USD/h"

    def closed(self, cheapest: float) -> str:
        """Why not even an instance at this price may enter the node; empty if it may."""
        return self.budget.closed(cheapest, self.now())

    def reserve(self, uid: PodUID, namespace: str, candidate: Candidate) -> None:
        """A create begins."""
        self.budget.reserved[uid] = (
            namespace,
            _price(candidate, self.budget.limits.unpriced_usd_per_hour),
        )

    def release(self, uid: PodUID) -> None:
        """Nothing was made for the pod, or nothing of it is left."""
        self.budget.reserved.pop(uid, None)

    def created(self, uid: PodUID, namespace: str, candidate: Candidate, ref: InstanceRef) -> None:
        """A create made an instance: its meter runs."""
        self.release(uid)
        price = _price(candidate, self.budget.limits.unpriced_usd_per_hour)
        if price > 0:
            reading = Reading(Key(candidate.backend, ref.id), namespace, uid, price)
            self.budget.meters.begin(reading, self.now())

    def ended(self, backend: str, ref: InstanceRef) -> None:
        """A backend has acknowledged the order to end an instance."""
        self.budget.meters.stop(Key(backend, ref.id), self.now())

    def listed(self, backend: str, traits: ProviderTraits, seen: Sequence[Observation]) -> None:
        """A complete list shows these instances of ours."""
        now = self.now()
        unpriced = self.budget.limits.unpriced_usd_per_hour
        billing = Billing(traits.ended_is_free, traits.starting_is_free, unpriced)
        running = self.budget.meters.running
        readings = [
            reading_of(backend, each, billing, now.calendar)
            for each in seen
            if each.usd_per_hour is not None or unpriced or Key(backend, each.ref.id) in running
        ]
        self.budget.meters.take(backend, readings, now, traits.list_lag_seconds)
        for each in seen:
            self.release(each.stamp.pod_uid)
        self.look()

    def reported(self, backend: str, reports: Sequence[Report]) -> None:
        """A backend told what instances cost."""
        now = self.now()
        settled = now.calendar_at(now.steady - SETTLED_SECONDS)
        self.budget.meters.report(backend, reports, settled)
        self.look()

    def look(self) -> None:
        """Take in the time: who must go, and what the metrics show."""
        to_end = self.budget.to_end(self.now())
        self.dismissed = {PodUID(uid): why for uid, why in to_end.items()}
        self._shown.show(self.budget.meters.totals, self.budget.shares(self.now()))

    def now(self) -> Now:
        """This moment on both clocks."""
        return Now(self._shell.clock.now(), self._shell.clock.steady())


class _Shown:
    """The money in the metrics."""

    def __init__(self, shell: Shell) -> None:
        self._metrics = shell.metrics
        self._node = shell.node
        self._counted: dict[tuple[str, str], float] = {}

    def show(self, totals: Mapping[tuple[str, str], float], shares: Iterable[Share]) -> None:
        """A counter never falls: what a bill takes back is made up for before it rises again. A
        namespace that is forgotten has no series any more."""
        for (backend, namespace), usd in totals.items():
            more = usd - self._counted.get((backend, namespace), 0.0)
            if more > 0:
                self._metrics.spend_usd.labels(self._node, backend, namespace).inc(more)
                self._counted[backend, namespace] = usd
        for gone in self._counted.keys() - totals.keys():
            del self._counted[gone]
            self._metrics.spend_usd.remove(self._node, *gone)
        for each in shares:
            labels = (self._node, each.scope, each.period)
            self._metrics.budget_usd.labels(*labels).set(each.cap)
            self._metrics.budget_spent_usd.labels(*labels).set(each.usd)
            self._metrics.budget_remaining_usd.labels(*labels).set(max(0.0, each.cap - each.usd))


def _price(candidate: Candidate, unpriced: float) -> float:
    price = usable_price(candidate.offer)
    return unpriced if price is None else price
