"""A simulator's time: real, faster than real, or standing still until somebody advances it.

Fed by the command line and the back door; feeds every state, bill and log line with ``now``.
All times in a simulator are seconds since the epoch; :func:`rfc3339` renders them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime


@dataclass(slots=True)
class Clock:
    """A clock that runs ``speed`` times as fast as the wall's; 0 makes it virtual.

    ``behind`` lets it start so many seconds ago: clients ask for logs up to their own present, so
    a clock that is going to be advanced must start in the past.
    """

    speed: float = 1.0
    behind: float = 0.0
    _origin: float = field(default_factory=time.time)
    _advanced: float = 0.0
    _started: float = field(default_factory=time.monotonic)

    def now(self) -> float:
        """Seconds since the epoch, in simulated time."""
        elapsed = (time.monotonic() - self._started) * self.speed
        return self._origin - self.behind + self._advanced + elapsed

    def advance(self, seconds: float) -> float:
        """Jump forward; returns the new time. Raises ``ValueError``: time never goes back."""
        if seconds < 0:
            raise ValueError("the clock can only be advanced: seconds must be 0 or more")
        self._advanced += seconds
        return self.now()


def rfc3339(seconds: float) -> str:
    """A time as APIs write it: UTC, microseconds only where there are any."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
    return text.replace(".000000", "").replace("+00:00", "Z")


def http_date(seconds: float) -> str:
    """A time as the ``Date`` header writes it."""
    return format_datetime(datetime.fromtimestamp(seconds, UTC), usegmt=True)


def parse_rfc3339(text: str) -> float:
    """The inverse of :func:`rfc3339`; raises ``ValueError`` on anything without a zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment.timestamp()
