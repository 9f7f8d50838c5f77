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
CREATE_WAIT_SECONDS = 60.0
"""A create may wait for its turn, since failing it for our own budget would fail its pod."""
RESERVE = 0.1


class Budget:
    """At most ``per_minute`` calls in a minute, all of them at once if it must be."""

    def __init__(self, per_minute: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._capacity = float(per_minute)
        self._tokens = self._capacity
        self._monotonic = monotonic
        self._filled_at = monotonic()
        self._closed_until = 0.0
        self._turns = asyncio.Lock()

    async def spend(self, operation: str, *, creates: bool = False) -> None:
        """Take one call from the budget; waits for it, or raises ``ThrottledError``."""
        if creates:
            await self._spend_in_turn(operation)
            return
        wait = self._missing_seconds(0.0)
        if wait > LONGEST_WAIT_SECONDS:
            raise _throttled(operation, wait)
        self._tokens -= 1
        if wait > 0:
            await asyncio.sleep(wait)

    async def _spend_in_turn(self, operation: str) -> None:
        """Creates queue among themselves and book nothing ahead, so they hold up nobody else."""
        deadline = self._monotonic() + CREATE_WAIT_SECONDS
        async with self._turns:
            while (wait := self._missing_seconds(self._capacity * RESERVE)) > 0:
                if self._monotonic() + wait > deadline:
                    raise _throttled(operation, wait)
                await asyncio.sleep(max(wait, 0.001))
            self._tokens -= 1

    def learn(self, status: int, headers: Mapping[str, str]) -> None:
        """Obey ``Retry-After`` and ``RateLimit`` of an answer."""
        wait = exhausted(headers.get("RateLimit", ""))
        if status == 429:
            wait = retry_after(headers) or wait or 1.0
        if wait is not None:
            self._closed_until = max(self._closed_until, self._monotonic() + wait)

    def _missing_seconds(self, reserve: float) -> float:
        """How long until there is room for a call beside the reserve."""
        now = self._monotonic()
        refill = (now - self._filled_at) * self._capacity / 60
        self._tokens = min(self._capacity, self._tokens + refill)
        self._filled_at = now
        lacking = max(0.0, 1 + reserve - self._tokens)
        return max(self._closed_until - now, lacking * 60 / self._capacity)


def _throttled(operation: str, wait: float) -> ThrottledError:
    message = f"RunPod, {operation}: not sent, the rate limit is used up for {wait:.0f} s"
    return ThrottledError(message, wait)
