"""Calendar time that follows the event loop's, so that tests run an hour in a second.

Fed by the loop (virtual or not); handed to loops in place of ``SystemClock``.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta


class LoopClock:
    """Calendar time that follows the event loop's, for virtual time."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._zero = asyncio.get_running_loop().time()

    def now(self) -> datetime:
        """``start`` plus what the loop's clock has advanced since."""
        return self._start + timedelta(seconds=self.steady() - self._zero)

    def steady(self) -> float:
        """The event loop's (virtual) seconds."""
        return asyncio.get_running_loop().time()
