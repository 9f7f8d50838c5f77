"""Memory that streams have used goes back to the system, not only to our own heap.

A few hundred streams at once take their chunks from all over the heap; the C library keeps such
memory for ever, since its end is rarely free. Fed by the end of streams.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

TRIM_SECONDS = 5.0


def give_back() -> None:
    """Hand back what is free anywhere in the heap. Only glibc can; elsewhere nothing happens."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return
    trim(0)


class Trimmer:
    """Gives memory back a while after it was asked to, once for all who asked meanwhile."""

    def __init__(self, trim: Callable[[], None] = give_back, seconds: float = TRIM_SECONDS) -> None:
        self._trim = trim
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def soon(self) -> None:
        """There may be something to give back."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._now)

    def close(self) -> None:
        """Forget it. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _now(self) -> None:
        self._timer = None
        self._trim()
