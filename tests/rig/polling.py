"""Waiting for something to become true, with a deadline and a useful message."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Result = TypeVar("Result")


async def eventually(
    probe: Callable[[], Awaitable[Result | None]],
    what: str,
    *,
    seconds: float = 60.0,
    interval: float = 0.1,
) -> Result:
    """Call the probe until it returns something true, and return that.

    Raises TimeoutError with `what` and the probe's last answer once the time is over.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = await probe()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s; last answer: {answer!r}")
        await asyncio.sleep(interval)
