"""Which Events are worth a call, with the etiquette that every Kubernetes client keeps.

The same event again is a higher ``count`` on the same object; more than ten similar ones (same
everything but the message) within ten minutes become one "(combined from similar events)"; and an
object that keeps on talking is cut off: 25 at once, then one per five minutes.

No clock and no socket: ``now`` is an argument. Fed by and feeds ``kube.events``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

COMBINED_PREFIX = "(combined from similar events): "
MOST_REMEMBERED = 4096

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object an Event is about."""

    kind: str
    namespace: str
    name: str
    uid: str
    api_version: str = "v1"
    field_path: str = ""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something happened, as it was emitted."""

    regarding: Regarding
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Entry:
    """An Event to be written: ``count`` 1 is created, more is a PATCH of ``number``'s object."""

    occurrence: Occurrence
    number: int
    count: int
    first: float
    last: float


@dataclass(frozen=True, slots=True)
class Limits:
    """The etiquette's numbers; the defaults are client-go's."""

    similar: int = 10
    similar_seconds: float = 600.0
    burst: int = 25
    refill_seconds: float = 300.0


@dataclass(slots=True)
class _Similar:
    messages: set[str] = field(default_factory=set)
    last: float = 0.0


@dataclass(slots=True)
class Bucket:
    """Tokens that come back with time."""

    burst: float
    refill_seconds: float
    tokens: float
    at: float

    def take(self, now: float) -> bool:
        """Use one token, if there is one."""
        refilled = (now - self.at) / self.refill_seconds
        self.tokens = min(self.burst, self.tokens + max(0.0, refilled))
        self.at = now
        if self.tokens < 1.0:
            return False
        self.tokens -= 1.0
        return True

    def wait_seconds(self) -> float:
        """How long until the next token."""
        return max(0.0, (1.0 - self.tokens) * self.refill_seconds)


class _Recent(Generic[V]):
    """The latest entries by key; the oldest is forgotten."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable, otherwise: V) -> V:
        """The entry, made the latest one."""
        found = self._entries.pop(key, otherwise)
        self.put(key, found)
        return found

    def put(self, key: Hashable, value: V) -> None:
        """Keep as the latest entry."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > MOST_REMEMBERED:
            self._entries.popitem(last=False)


class EventCorrelator:
    """Remembers what was emitted, and says what is to be written."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._similar: _Recent[_Similar] = _Recent()
        self._entries: _Recent[Entry | None] = _Recent()
        self._buckets: _Recent[Bucket] = _Recent()
        self._number = 0

    def correlate(self, occurrence: Occurrence, now: float) -> Entry | None:
        """The Event to write for this, or None if its object has said enough."""
        shown, key = self._combine(occurrence, now)
        entry = self._count(shown, key, now)
        return entry if self._bucket(occurrence.regarding, now).take(now) else None

    def _combine(self, occurrence: Occurrence, now: float) -> tuple[Occurrence, Hashable]:
        group = (occurrence.regarding, occurrence.type, occurrence.reason)
        similar = self._similar.get(group, _Similar(last=now))
        if now - similar.last > self._limits.similar_seconds:
            similar.messages.clear()
        similar.last = now
        similar.messages.add(occurrence.message)
        if len(similar.messages) <= self._limits.similar:
            return occurrence, occurrence
        # One that is shown already leaves, so that the set does not grow with what is said.
        similar.messages.pop()
        return replace(occurrence, message=COMBINED_PREFIX + occurrence.message), group

    def _count(self, occurrence: Occurrence, key: Hashable, now: float) -> Entry:
        known = self._entries.get(key, None)
        if known is None:
            self._number += 1
            entry = Entry(occurrence, self._number, 1, now, now)
        else:
            entry = replace(known, occurrence=occurrence, count=known.count + 1, last=now)
        self._entries.put(key, entry)
        return entry

    def _bucket(self, regarding: Regarding, now: float) -> Bucket:
        limits = self._limits
        bucket = Bucket(limits.burst, limits.refill_seconds, limits.burst, now)
        return self._buckets.get(replace(regarding, field_path=""), bucket)
