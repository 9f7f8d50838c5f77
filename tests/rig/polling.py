"""Waiting for something to become true, with a deadline and a useful message."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import aiohttp

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


async def answers(url: str) -> bool:
    """Whether a GET is answered with 200. For a probe: nobody listens, that is no."""
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False
