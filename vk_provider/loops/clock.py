"""The two clocks of the loops: the calendar for what people read, a steady one for intervals.

Fed by the system; handed to every loop, so that tests run an hour in a second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Where loops get the time from."""

    def now(self) -> datetime:
        """The calendar time, UTC."""

    def steady(self) -> float:
        """Seconds that never jump; only differences mean something."""


def _read_clocks() -> tuple[datetime, float]:
    return datetime.now(UTC), time.monotonic()


class SystemClock:
    """The real one. Its calendar never goes back: every list would be older than what is known,
    for as long as the system was put back. It goes at half its pace then until that is made up."""

    def __init__(self, read: Callable[[], tuple[datetime, float]] = _read_clocks) -> None:
        self._read = read
        self._said, self._said_at = read()

    def now(self) -> datetime:
        """The calendar time, UTC."""
        calendar, steady = self._read()
        earliest = self._said + timedelta(seconds=(steady - self._said_at) / 2)
        self._said, self._said_at = max(calendar, earliest), steady
        return self._said

    def steady(self) -> float:
        """The event loop's monotonic seconds."""
        return asyncio.get_running_loop().time()
