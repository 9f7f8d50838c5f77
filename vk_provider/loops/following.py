"""Follows an endless stream of a backend, and opens it again when it breaks.

Fed by a provider's stream; whoever asks says what becomes of its items.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from vk_provider.faults import ProviderError
from vk_provider.loops.shell import Shell

logger = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS = 60.0
"""Between two tries of a stream that breaks at once."""
MOST_DOUBLINGS = 6

T = TypeVar("T")


class Following:
    """One stream of one backend; ``what`` names it in the log (``backend a: its watch``)."""

    def __init__(self, what: str, shell: Shell) -> None:
        self._what = what
        self._shell = shell
        self._said = ""

    async def run(
        self, open_stream: Callable[[], AsyncIterator[T]], take: Callable[[T], None]
    ) -> None:
        """Take what comes, until cancelled; a broken stream is opened again, ever more rarely if
        it breaks at once."""
        failures = 0
        while True:
            begun = self._shell.clock.steady()
            await self._follow(open_stream, take)
            has_lasted = self._shell.clock.steady() - begun >= LONGEST_PAUSE_SECONDS
            failures = 0 if has_lasted else min(failures + 1, MOST_DOUBLINGS)
            pause = min(2.0**failures, LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(pause * (0.5 + self._shell.jitter() / 2))

    async def _follow(
        self, open_stream: Callable[[], AsyncIterator[T]], take: Callable[[T], None]
    ) -> None:
        try:
            async for item in open_stream():
                take(item)
        except ProviderError as fault:
            if self._is_news(fault):
                logger.warning("%s broke: %s", self._what, fault)
        except Exception as fault:  # A bug in a provider's stream; the lists go on.
            if self._is_news(fault):
                logger.exception("%s failed", self._what)

    def _is_news(self, fault: Exception) -> bool:
        before, self._said = self._said, repr(fault)
        return before != self._said
