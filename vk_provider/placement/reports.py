"""What was reckoned per instance and hour, kept for a while so that a bill can replace it.

A provider's bill comes late and by the hour. It is compared with the line of the same instance and
hour, and the difference is booked. Lines are kept only for backends that report. Pure.
Fed by :mod:`.meters` (what was reckoned) and the provider's reports.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

KEPT_HOURS = 72


@dataclass(frozen=True, slots=True)
class Report:
    """What a provider says that one instance cost between two moments of one clock hour."""

    instance: str
    begin: datetime
    end: datetime
    usd: float


@dataclass(slots=True)
class Lines:
    """By backend and instance, then by hour. ``backends``: those that report."""

    backends: set[str] = field(default_factory=set)
    _usd: dict[tuple[str, str], dict[datetime, float]] = field(default_factory=dict)
    _owners: dict[tuple[str, str], str] = field(default_factory=dict)
    _from: datetime | None = None

    def begin_at(self, moment: datetime) -> None:
        """Nothing is known per instance of what was before; the hour of a restart is left as it
        was reckoned."""
        self._from = hour_of(moment) + timedelta(hours=1)

    def note(
        self, key: tuple[str, str], namespace: str, usd: float, begin: datetime, end: datetime
    ) -> None:
        """An amount was reckoned, spread evenly over the time between."""
        self._owners[key] = namespace
        hours = self._usd.setdefault(key, {})
        for hour, share in _hours(begin, end):
            hours[hour] = hours.get(hour, 0.0) + usd * share

    def correct(self, backend: str, report: Report, is_final: bool) -> tuple[str, float] | None:
        """Take a report up: whose it is, and by how much what was reckoned differs; None where it
        changes nothing. An instance that is not known is somebody else's, or from before us."""
        key, hour = (backend, report.instance), hour_of(report.begin)
        namespace = self._owners.get(key)
        if namespace is None or not 0 <= report.usd < math.inf:
            return None
        if self._from is not None and hour < self._from:
            return None
        hours = self._usd.setdefault(key, {})
        difference = report.usd - hours.get(hour, 0.0)
        if difference == 0 or (difference < 0 and not is_final):
            return None
        hours[hour] = report.usd
        return namespace, difference

    def prune(self, now: datetime) -> None:
        """Forget what is too old to be corrected."""
        oldest = now - timedelta(hours=KEPT_HOURS)
        for key, hours in list(self._usd.items()):
            for hour in [each for each in hours if each < oldest]:
                del hours[hour]
            if not hours:
                del self._usd[key]
                del self._owners[key]


def hour_of(moment: datetime) -> datetime:
    """The beginning of its clock hour, UTC."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _hours(begin: datetime, end: datetime) -> Iterator[tuple[datetime, float]]:
    """Each clock hour of a stretch with its share of it; of a stretch without length its own."""
    whole = (end - begin).total_seconds()
    at, hour = begin, hour_of(begin)
    while whole > 0 and (following := hour + timedelta(hours=1)) < end:
        yield hour, (following - at).total_seconds() / whole
        at = hour = following
    yield hour, (end - at).total_seconds() / whole if whole > 0 else 1.0
