"""The rate budget of one account: a token bucket that also obeys what the service says.

Fed by ``client`` before each call (:meth:`Budget.spend`) and after it (:meth:`Budget.learn`).
Creates leave a reserve, so that the orders that stop billing always get through.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from vk_provider.faults import ThrottledError
from vk_provider_runpod.answers import exhausted, retry_after

LONGEST_WAIT_SECONDS = 10.0
RESERVE = 0.1


class Budget:
    """At most ``per_minute`` calls in a minute, all of them at once if it must be."""

    def __init__(self, per_minute: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._capacity = float(per_minute)
        self._tokens = self._capacity
        self._monotonic = monotonic
        self._filled_at = monotonic()
        self._closed_until = 0.0

    async def spend(self, operation: str, *, reserve: bool = False) -> None:
        """Take one call from the budget; waits a little, else raises ``ThrottledError``."""
        wait = self._take(self._capacity * RESERVE if reserve else 0.0)
        if wait > LONGEST_WAIT_SECONDS:
            raise ThrottledError(
                f"RunPod, {operation}: not sent, the rate limit is used up for {wait:.0f} s", wait
            )
        if wait > 0:
            await asyncio.sleep(wait)

    def learn(self, status: int, headers: Mapping[str, str]) -> None:
        """Obey ``Retry-After`` and ``RateLimit`` of an answer."""
        wait = exhausted(headers.get("RateLimit", ""))
        if status == 429:
            wait = retry_after(headers) or wait or 1.0
        if wait is not None:
            self._closed_until = max(self._closed_until, self._monotonic() + wait)

    def _take(self, reserve: float) -> float:
        """Seconds to wait before the call; books it unless the wait is too long."""
        now = self._monotonic()
        refill = (now - self._filled_at) * self._capacity / 60
        self._tokens = min(self._capacity, self._tokens + refill)
        self._filled_at = now
        lacking = max(0.0, 1 + reserve - self._tokens)
        wait = max(self._closed_until - now, lacking * 60 / self._capacity)
        if wait <= LONGEST_WAIT_SECONDS:
            self._tokens -= 1
        return wait
