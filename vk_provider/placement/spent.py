"""What was spent, by calendar day and month (UTC), for the node and for each namespace.

Amounts lie under the name of their day and month, and nothing is ever "reset": a clock that jumps
over the end of a month and back finds the old month's sum where it was. Sums of this and the last
few periods are kept. Pure. Fed by :mod:`.meters`; read by :mod:`.budget`, the metrics and the node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache

NODE = ""
"""The scope of everything together; any other scope is a namespace."""
MONTHS_KEPT = 3
DAYS_KEPT = 7


class Window(StrEnum):
    """The calendar periods that a sum may be limited in."""

    DAY = "day"
    MONTH = "month"

    def key(self, at: datetime) -> str:
        """``2026-01-31`` or ``2026-01``."""
        return at.astimezone(UTC).strftime("%Y-%m-%d" if self is Window.DAY else "%Y-%m")

    def ends(self, at: datetime) -> datetime:
        """The first moment of the next one."""
        day = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self is Window.DAY:
            return day + timedelta(days=1)
        return (day.replace(day=1) + timedelta(days=32)).replace(day=1)


@dataclass(slots=True)
class Spent:
    """US dollars by period and scope. Moments are given in UTC."""

    _sums: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, namespace: str, usd: float, begin: datetime, end: datetime) -> None:
        """An amount that arose evenly between two moments; negative takes back what was reckoned
        too high, never below nothing."""
        if begin.date() == end.date():
            self._put(namespace, usd, begin)
            return
        whole = (end - begin).total_seconds()
        for day, seconds in _days(begin, end):
            self._put(namespace, usd * seconds / whole if whole > 0 else usd, day)

    def _put(self, namespace: str, usd: float, at: datetime) -> None:
        for key in _keys(at.date()):
            sums = self._sums.setdefault(key, {})
            for scope in (NODE, namespace) if namespace else (NODE,):
                sums[scope] = max(0.0, sums.get(scope, 0.0) + usd)

    def of(self, window: Window, at: datetime, scope: str = NODE) -> float:
        """What was spent in the period of this moment."""
        return self._sums.get(window.key(at), {}).get(scope, 0.0)

    def prune(self, at: datetime) -> None:
        """Forget periods that ended long ago. Those after ``at`` stay: a clock may step back."""
        month = Window.MONTH.key(at - timedelta(days=31 * MONTHS_KEPT))
        day = Window.DAY.key(at - timedelta(days=DAYS_KEPT))
        old = [key for key in self._sums if key < (day if len(key) > len(month) else month)]
        for key in old:
            del self._sums[key]

    def saved(self, at: datetime) -> Mapping[str, Mapping[str, float]]:
        """The sums of the present day and month, as a restart needs them."""
        keys = [window.key(at) for window in Window]
        return {key: dict(self._sums[key]) for key in keys if key in self._sums}

    def restore(self, saved: Mapping[str, Mapping[str, float]]) -> None:
        """Take up what was saved, where it is more than what is known."""
        for key, sums in saved.items():
            known = self._sums.setdefault(key, {})
            for scope, usd in sums.items():
                known[scope] = max(known.get(scope, 0.0), usd)


@lru_cache(maxsize=64)  # asked for each instance at each list, and new once a day
def _keys(day: date) -> tuple[str, ...]:
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return tuple(window.key(moment) for window in Window)


def _days(begin: datetime, end: datetime) -> Iterator[tuple[datetime, float]]:
    """Each calendar day of a stretch: a moment of it, and its seconds in the stretch."""
    at = begin
    while (midnight := Window.DAY.ends(at)) < end:
        yield at, (midnight - at).total_seconds()
        at = midnight
    yield at, max(0.0, (end - at).total_seconds())
