"""Whether one more instance fits into the budget, and which must end so that a cap holds.

A cap is kept by two means. The door: nothing new is let in unless everything that then runs could
run on for a while without passing a cap. And at the cap: instances end, dearest first, early enough
that their ends are over before the money is. ``usdPerHour`` limits what all instances cost per
hour at any moment: it only lets in or not, and ends nothing.
Pure. Fed by :mod:`.meters` and the creates under way; asked by ``loops.spending``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from vk_provider.placement.meters import Meters, Now
from vk_provider.placement.spent import NODE, Window

RUN_ON_SECONDS = 600.0
"""What is let in should be worth its start: so long everything could run on below each cap."""
ORDER_SECONDS = 10.0
"""From the decision that an instance ends to the order at its backend: last words, one call."""
CENT = 0.000_001
"""Sums of prices are no exact numbers."""


@dataclass(frozen=True, slots=True)
class Caps:
    """US dollars for one scope; None: no limit."""

    usd_per_hour: float | None = None
    usd_per_day: float | None = None
    usd_per_month: float | None = None

    def windows(self) -> Iterator[tuple[Window, float]]:
        """The limited calendar periods."""
        for window, cap in ((Window.DAY, self.usd_per_day), (Window.MONTH, self.usd_per_month)):
            if cap is not None:
                yield window, cap

    @property
    def any(self) -> bool:
        """Whether anything is limited."""
        return (self.usd_per_hour, self.usd_per_day, self.usd_per_month) != (None, None, None)


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """``namespaces``: caps of single ones, beside the node's. ``drains``: instances end at a cap.
    ``warn_share``: from which share of a cap on people are warned. ``unpriced_usd_per_hour``: what
    an instance is reckoned at whose backend tells no price."""

    node: Caps = Caps()
    namespaces: Mapping[str, Caps] = field(default_factory=dict)
    drains: bool = True
    warn_share: float = 0.8
    unpriced_usd_per_hour: float = 0.0

    def scopes(self) -> Iterator[tuple[str, Caps]]:
        """The node's caps, then those of the namespaces."""
        if self.node.any:
            yield NODE, self.node
        yield from ((name, caps) for name, caps in self.namespaces.items() if caps.any)

    def scopes_of(self, namespace: str) -> Iterator[tuple[str, Caps]]:
        """Those that a pod of this namespace must fit into."""
        return (each for each in self.scopes() if each[0] in (NODE, namespace))

    @property
    def any(self) -> bool:
        """Whether there is a budget at all."""
        return any(True for _ in self.scopes())


@dataclass(frozen=True, slots=True)
class Share:
    """One cap and what of it is spent, for people and metrics. ``period`` is ``hour`` (then
    ``usd`` is what runs now costs per hour), ``day`` or ``month``; ``key`` names the very one."""

    scope: str
    period: str
    cap: float
    usd: float
    key: str

    @property
    def share(self) -> float:
        """What is spent, from 0 to 1; a cap of nothing is always spent."""
        return self.usd / self.cap if self.cap else 1.0

    @property
    def name(self) -> str:
        """``the node's budget of 1000.00 USD/month``."""
        return name_of(self.scope, self.period, self.cap)

    @property
    def words(self) -> str:
        """``82 % of the node's budget of 1000.00 USD/month is spent``."""
        verb = "is taken" if self.period == "hour" else "is spent"
        # Rounded down: what is not quite spent is not called spent.
        return f"{math.floor(100 * self.share + CENT)} % of {self.name} {verb}"


@dataclass(slots=True)
class Budget:
    """One node's caps against its meters. ``reserved``: creates under way, by pod."""

    limits: BudgetLimits
    meters: Meters
    tick_seconds: float = 10.0
    grace: Callable[[str], float] = lambda pod_uid: 30.0
    """How many seconds a pod's containers may take to stop; they are billed meanwhile."""
    reserved: dict[str, tuple[str, float]] = field(default_factory=dict)

    def rate(self, scope: str = NODE) -> float:
        """What everything costs per hour that runs, or is about to."""
        running = [(each.namespace, each.usd_per_hour) for each in self.meters.running.values()
                   if each.stopped_at is None]  # fmt: skip
        both = [*running, *self.reserved.values()]
        return sum(price for namespace, price in both if scope in (NODE, namespace))

    def over(self, usd_per_hour: float, namespace: str, now: Now) -> str:
        """Why an instance at this price may not be made; empty if it may."""
        found = self._over(self.limits.scopes_of(namespace), usd_per_hour, now)
        if found is None:
            return ""
        scope, period, cap, left = found
        return f"{name_of(scope, period, cap)} has {max(0.0, left):.2f} left"

    def closed(self, cheapest: float, now: Now) -> str:
        """Why not even the cheapest instance may enter the node; empty if it may. The words stay
        the same while that is so."""
        scopes = [(NODE, self.limits.node)] if self.limits.node.any else []
        found = self._over(scopes, cheapest, now)
        if found is None:
            return ""
        is_rate = found[1] == "hour"
        words = "is taken by what runs" if is_rate else "is spent but for what runs"
        return f"{name_of(*found[:3])} {words}"

    def to_end(self, now: Now) -> Mapping[str, str]:
        """The pods whose instances must end now so that no cap is passed, each with why."""
        found: dict[str, str] = {}
        if not self.limits.drains:
            return found
        for scope, caps in self.limits.scopes():
            for window, cap in caps.windows():
                for uid in self._beyond(scope, window, cap, now):
                    found.setdefault(uid, f"{name_of(scope, window, cap)} is spent")
        return found

    def shares(self, now: Now) -> Iterator[Share]:
        """Every cap with what is spent of it."""
        for scope, caps in self.limits.scopes():
            if caps.usd_per_hour is not None:
                yield Share(scope, "hour", caps.usd_per_hour, self.rate(scope), "rate")
            for window, cap in caps.windows():
                usd = self.meters.usd(window, now, scope)
                yield Share(scope, str(window), cap, usd, window.key(now.calendar))

    def warnings(self, now: Now) -> list[Share]:
        """The caps of days and months that are nearly spent. The hour's is there to be filled."""
        least = self.limits.warn_share
        return [each for each in self.shares(now) if each.period != "hour" and each.share >= least]

    def _over(
        self, scopes: Iterable[tuple[str, Caps]], price: float, now: Now
    ) -> tuple[str, str, float, float] | None:
        """The first cap that one more instance at this price would pass, and what is left of it."""
        for scope, caps in scopes:
            rate = self.rate(scope)
            if caps.usd_per_hour is not None and price > caps.usd_per_hour - rate + CENT:
                return scope, "hour", caps.usd_per_hour, caps.usd_per_hour - rate
            for window, cap in caps.windows():
                left = self._left(scope, window, cap, now)
                if (rate + price) * self._horizon(window, now) / 3600 > left:
                    return scope, window, cap, left
        return None

    def _left(self, scope: str, window: Window, cap: float, now: Now) -> float:
        return cap - self.meters.usd(window, now, scope)

    def _horizon(self, window: Window, now: Now) -> float:
        """For how long all must be able to run on; what comes after the period counts for the
        next one."""
        until_end = (window.ends(now.calendar) - now.calendar).total_seconds()
        return min(RUN_ON_SECONDS + self.tick_seconds + ORDER_SECONDS, until_end)

    def _beyond(self, scope: str, window: Window, cap: float, now: Now) -> Iterable[str]:
        """The dearest go first, until what is left pays for all the others to run to the next look
        and to their ends."""
        until_end = (window.ends(now.calendar) - now.calendar).total_seconds()
        left = self._left(scope, window, cap, now)
        running = sorted(
            (
                (each.usd_per_hour, each.pod_uid)
                for each in self.meters.running.values()
                if each.stopped_at is None and each.usd_per_hour > 0
                if scope in (NODE, each.namespace)
            ),
            reverse=True,
        )
        ends = {uid: min(self.grace(uid) + ORDER_SECONDS, until_end) for _, uid in running}
        stays = {uid: min(ends[uid] + self.tick_seconds, until_end) for _, uid in running}
        needed = sum(price * stays[uid] for price, uid in running) / 3600
        for price, uid in running:
            if needed <= left:
                return
            needed -= price * (stays[uid] - ends[uid]) / 3600
            yield uid


def name_of(scope: str, period: str, cap: float) -> str:
    """``the node's budget of 40.00 USD/h``."""
    whose = "the node's budget" if scope == NODE else f"the budget of namespace {scope}"
    return f"{whose} of {cap:.2f} USD/{'h' if period == 'hour' else period}"
