"""Run something beside a test and wait for conditions with a deadline, however slow the machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

DEADLINE_SECONDS = 20.0


async def eventually(
    condition: Callable[[], object],
    what: str = "the condition",
    *,
    seconds: float = DEADLINE_SECONDS,
) -> None:
    """Return once the condition holds; fail after the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {seconds:.0f} s")
        await asyncio.sleep(0.005)


@asynccontextmanager
async def running(coroutine: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run a coroutine beside the block and cancel it after; its own failure is the test's."""
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
