"""What every loop of a node shares: clocks, metrics, tasks that are watched, and who may act.

Fed by ``app``; handed to each loop.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from vk_provider.loops.clock import Clock
from vk_provider.metrics import Metrics

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Shell:
    """The common surroundings of one node's loops.

    ``may_act`` is False as soon as leadership may be somebody else's: nothing is then created,
    deleted or written. ``jitter`` gives numbers in [0, 1).
    """

    clock: Clock
    metrics: Metrics
    may_act: Callable[[], bool] = lambda: True
    jitter: Callable[[], float] = random.random
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run something to its end beside the loops; a fault in it is our bug and is logged."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def drain(self, seconds: float) -> None:
        """Let what is under way finish, for so long; then cancel the rest and wait for it."""
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=seconds)
        left = list(self.tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if task.cancelled():
            return
        fault = task.exception()
        if fault is not None:
            logger.error("task %s failed: this is a bug", task.get_name(), exc_info=fault)
