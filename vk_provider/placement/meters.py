"""One meter per instance: price times the time that its backend really billed it.

A meter starts when the instance began to be billed (by the backend's own times), runs while lists
show it, and stops when its end was ordered, observed, or a complete list lacks it. Time is reckoned
by the steady clock between two readings, so a step of the calendar costs nothing; the calendar only
says which day an amount belongs to. What a provider reports itself replaces what was reckoned.
Pure. Fed by ``loops.spending``; feeds :mod:`.spent` and :mod:`.budget`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from vk_provider.placement.readings import Key, Reading, price_of
from vk_provider.placement.reports import Lines, Report
from vk_provider.placement.resumed import Resumed
from vk_provider.placement.spent import NODE, Spent, Window

MOST_CLOSED = 4096
TOTALS_KEPT = timedelta(days=35)
"""After so long without a cost a namespace's total is forgotten: many come once and never again.
Longer than a month, in which a budget may be spent early."""

Rates = Mapping[str, Mapping[str, float]]
"""USD per hour by backend and namespace."""


class Now(NamedTuple):
    """One moment on both clocks."""

    calendar: datetime
    steady: float

    def steady_at(self, calendar: datetime) -> float:
        """What the steady clock said, or would have said, at another moment."""
        return self.steady - (self.calendar - calendar).total_seconds()

    def calendar_at(self, steady: float) -> datetime:
        """The inverse."""
        return self.calendar - timedelta(seconds=self.steady - steady)


@dataclass(slots=True)
class Meter:
    """``read_at``: steady seconds up to which it is reckoned. ``stopped_at``: its end was ordered,
    so it runs no more unless lists show for longer than their lag that it does."""

    namespace: str
    pod_uid: str
    usd_per_hour: float
    read_at: float
    stopped_at: float | None = None
    is_listed: bool = False

    def usd(self, until: float) -> float:
        """What it has cost since it was read."""
        if self.stopped_at is not None:
            return 0.0
        return self.usd_per_hour * max(0.0, until - self.read_at) / 3600


@dataclass(slots=True)
class Meters:
    """All instances of one node. ``totals``: what each backend has cost for each namespace since
    this process began to reckon, or since it last cost nothing for :data:`TOTALS_KEPT`."""

    spent: Spent = field(default_factory=Spent)
    totals: dict[tuple[str, str], float] = field(default_factory=dict)
    running: dict[Key, Meter] = field(default_factory=dict)
    lines: Lines = field(default_factory=Lines)
    _closed: OrderedDict[Key, Meter] = field(default_factory=OrderedDict)
    _resumed: Resumed = field(default_factory=Resumed)
    _cost_at: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def begin(self, reading: Reading, now: Now) -> None:
        """A create made an instance, at this moment as far as we know."""
        price = price_of(reading.usd_per_hour)
        meter = Meter(reading.namespace, reading.pod_uid, price or 0.0, now.steady)
        self.running.setdefault(reading.key, meter)

    def stop(self, key: Key, now: Now) -> None:
        """Its end was ordered, and the backend has acknowledged it."""
        meter = self.running.get(key)
        if meter is not None and meter.stopped_at is None:
            self._read(key, meter, now.steady, now)
            meter.stopped_at = now.steady

    def take(
        self, backend: str, readings: Sequence[Reading], now: Now, lag_seconds: float = 0.0
    ) -> None:
        """A complete list of one backend: read every meter of it."""
        shown = {each.key: each for each in readings}
        for key in [each for each in self.running if each.backend == backend]:
            if key not in shown:
                self._miss(key, now, lag_seconds)
        for reading in shown.values():
            self._show(reading, now, lag_seconds)
        for namespace, usd in self._resumed.gone(backend, readings, now.calendar):
            self._add(backend, namespace, usd, self._resumed.at or now.calendar, now.calendar)
        self.spent.prune(now.calendar)
        self.lines.prune(now.calendar)
        oldest = now.calendar - TOTALS_KEPT
        for book in [each for each, at in self._cost_at.items() if at < oldest]:
            del self._cost_at[book], self.totals[book]

    def report(self, backend: str, reports: Sequence[Report], final_before: datetime) -> None:
        """The provider's own word on what instances cost. What ended before ``final_before`` is
        complete; of what is younger only more than was reckoned is believed."""
        for each in reports:
            found = self.lines.correct(backend, each, each.end <= final_before)
            if found is not None:
                namespace, usd = found
                begin, end = each.begin.astimezone(UTC), each.end.astimezone(UTC)
                self._add(backend, namespace, usd, begin, end)

    def usd(self, window: Window, now: Now, scope: str = NODE) -> float:
        """What was spent in the present period, up to this moment."""
        counted = (each for each in self.running.values() if scope in (NODE, each.namespace))
        under_way = sum(each.usd(now.steady) for each in counted)
        return self.spent.of(window, now.calendar, scope) + under_way

    def rates(self) -> dict[str, dict[str, float]]:
        """What runs now, by backend and namespace, in USD per hour."""
        rates: dict[str, dict[str, float]] = {}
        for key, meter in self.running.items():
            if meter.stopped_at is None and meter.usd_per_hour:
                of_backend = rates.setdefault(key.backend, {})
                rate = of_backend.get(meter.namespace, 0.0) + meter.usd_per_hour
                of_backend[meter.namespace] = round(rate, 6)
        return rates

    def restore(self, spent: Mapping[str, Mapping[str, float]], rates: Rates, at: datetime) -> None:
        """Go on where a predecessor left off at ``at``: its sums, and what ran then."""
        self.spent.restore(spent)
        self.lines.begin_at(at)
        self._resumed = Resumed(at, dict(rates))

    def _show(self, reading: Reading, now: Now, lag: float) -> None:
        key = reading.key
        meter = self.running.get(key) or self._closed.pop(key, None)
        if meter is None:
            began = _begun(self._resumed, reading.since or now.calendar, now)
            meter = Meter(reading.namespace, reading.pod_uid, 0.0, began)
        elif not meter.is_listed and meter.stopped_at is None and reading.since is not None:
            # What its create said was a guess: the backend knows when its bill began.
            meter.read_at = _begun(self._resumed, reading.since, now)
        self.running[key] = meter
        if not meter.is_listed:
            meter.is_listed = True
            meter.usd_per_hour = price_of(reading.usd_per_hour) or meter.usd_per_hour
        self._advance(reading, meter, now, lag)

    def _advance(self, reading: Reading, meter: Meter, now: Now, lag: float) -> None:
        if meter.stopped_at is not None:
            if now.steady <= meter.stopped_at + lag or reading.until is not None:
                return
            meter.stopped_at = None  # it has outlived the order, and was billed all the while
        if not reading.is_billed:
            meter.read_at = now.steady
            return
        end = now.steady if reading.until is None else now.steady_at(reading.until)
        self._read(reading.key, meter, min(end, now.steady), now)
        meter.read_at = now.steady
        price = price_of(reading.usd_per_hour)
        if reading.until is not None:
            meter.usd_per_hour = 0.0
        elif price is not None:  # a price that is missing once has not become nothing
            meter.usd_per_hour = price

    def _miss(self, key: Key, now: Now, lag: float) -> None:
        meter = self.running[key]
        if not meter.is_listed and now.steady < meter.read_at + lag:
            return  # too young for a list
        if meter.stopped_at is None:
            self._read(key, meter, now.steady, now)
        # Should a list show it again, it goes on from here and is not reckoned twice.
        self._closed[key] = self.running.pop(key)
        if len(self._closed) > MOST_CLOSED:
            self._closed.popitem(last=False)

    def _read(self, key: Key, meter: Meter, until: float, now: Now) -> None:
        usd = meter.usd(until)
        begin, end = meter.read_at, max(until, meter.read_at)
        meter.read_at = end
        is_reported = key.backend in self.lines.backends
        if usd <= 0 and not is_reported:
            return
        first, last = now.calendar_at(begin), now.calendar_at(end)
        self._add(key.backend, meter.namespace, usd, first, last)
        if is_reported:
            self.lines.note(key, meter.namespace, usd, first, last)

    def _add(
        self, backend: str, namespace: str, usd: float, begin: datetime, end: datetime
    ) -> None:
        self.spent.add(namespace, usd, begin, end)
        book = (backend, namespace)
        self.totals[book] = self.totals.get(book, 0.0) + usd
        self._cost_at[book] = max(end, self._cost_at.get(book, end))


def _begun(resumed: Resumed, began: datetime, now: Now) -> float:
    """Steady seconds from which an instance is to be reckoned."""
    return min(now.steady, now.steady_at(resumed.since(began)))
