"""Ends that must not take for ever: a stop has its time, whatever a backend does.

Fed by ``app.term``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

logger = logging.getLogger(__name__)

CANCEL_SECONDS = 1.0


async def bounded(work: Coroutine[Any, Any, Any], seconds: float, what: str) -> None:
    """Wait so long for ``work``, then leave it behind; a fault of it is logged, not raised."""
    await ended(asyncio.ensure_future(work), seconds, what)


async def ended(task: asyncio.Future[Any], seconds: float, what: str) -> None:
    """The same for a task that runs already."""
    await asyncio.wait({task}, timeout=seconds)
    if not task.done():
        logger.warning("%s took more than %g s and is left behind", what, seconds)
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_SECONDS)
    elif not task.cancelled() and task.exception() is not None:
        logger.warning("%s failed: %s", what, task.exception())
