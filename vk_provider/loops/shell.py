"""What every loop of a node shares: clocks, metrics, tasks that are watched, and who may act.

Fed by ``app``; handed to each loop. Its beats feed ``/livez``.
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

OnEnd = Callable[[asyncio.Task[Any]], None]
CANCEL_SECONDS = 2.0


@dataclass(slots=True)
class Shell:
    """The common surroundings of one node's loops.

    ``may_act`` is False as soon as leadership may be somebody else's: nothing is then created,
    deleted or written. ``jitter`` gives numbers in [0, 1). ``node`` is the label of its metrics.
    """

    clock: Clock
    metrics: Metrics
    may_act: Callable[[], bool] = lambda: True
    jitter: Callable[[], float] = random.random
    node: str = ""
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    _beats: dict[str, float] = field(default_factory=dict)

    def spawn(
        self, work: Coroutine[Any, Any, Any], name: str, on_end: OnEnd | None = None
    ) -> asyncio.Task[Any]:
        """Run something to its end beside the loops. ``on_end`` is told of every end, also of a
        task that was cancelled before its first step; without it a fault is logged as our bug."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(on_end or _log_bug)
        return task

    async def drain(self, seconds: float) -> None:
        """Let what is under way finish, for so long; then cancel the rest. What does not even end
        when cancelled is left behind: a stop has its time."""
        if self.tasks and seconds > 0:
            await asyncio.wait(set(self.tasks), timeout=seconds)
        left = set(self.tasks)
        for task in left:
            task.cancel()
        if left:
            logger.info("%d calls were still under way and are cancelled", len(left))
            await asyncio.wait(left, timeout=CANCEL_SECONDS)

    def beat(self, loop_name: str, silence_seconds: float) -> None:
        """A loop turns: unless it beats again within so long, this process is stuck."""
        self._beats[loop_name] = self.clock.steady() + silence_seconds

    def stuck(self) -> str | None:
        """The loop that has not turned for too long, in words; None if all do."""
        now = self.clock.steady()
        for name, until in self._beats.items():
            if now > until:
                return f"loop {name} of node {self.node} is {now - until:.0f} s overdue"
        return None


def _log_bug(task: asyncio.Task[Any]) -> None:
    fault = None if task.cancelled() else task.exception()
    if fault is not None:
        logger.error("task %s failed: this is a bug", task.get_name(), exc_info=fault)
