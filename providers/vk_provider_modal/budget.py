"""The rate of creates that Modal allows: a bucket of tokens, and a queue before it.

Fed by ``client`` before each create. A create waits for its turn here, since failing it for our
own haste would fail its pod.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class CreateBudget:
    """At most ``per_second`` creates, ``burst`` of them at once after a rest."""

    def __init__(
        self, per_second: float, burst: int, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._most = float(burst)
        self._tokens = float(burst)
        self._monotonic = monotonic
        self._filled_at = monotonic()
        self._turns = asyncio.Lock()

    async def spend(self) -> None:
        """Wait for a token and take it; first come, first served."""
        async with self._turns:
            while (lacking := 1 - self._filled()) > 0:  # noqa: ASYNC110  # time fills it
                await asyncio.sleep(max(lacking / self._per_second, 0.001))
            self._tokens -= 1

    def _filled(self) -> float:
        now = self._monotonic()
        refill = (now - self._filled_at) * self._per_second
        self._tokens, self._filled_at = min(self._most, self._tokens + refill), now
        return self._tokens
