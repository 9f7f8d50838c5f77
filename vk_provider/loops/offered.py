"""What the backends could carry at most, so that the node never promises more.

Configuration is the cap that the operator sets; a backend that knows its own limit (a quota,
another cluster's free resources) lowers allocatable below it. A backend that fails to answer keeps
its last answer. Fed by ``loops.backend``; read by the Node's view.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from fractions import Fraction

from vk_provider.faults import ProviderError
from vk_provider.loops.backend import Backend
from vk_provider.quantities import parse

logger = logging.getLogger(__name__)

ASK_SECONDS = 60.0


class Offered:
    """The last capacity of each backend."""

    def __init__(self, backends: Mapping[str, Backend], on_change: Callable[[], None]) -> None:
        self._backends = backends
        self._on_change = on_change
        self._known: dict[str, Mapping[str, Fraction]] = {}

    def total(self) -> Mapping[str, Fraction]:
        """By resource, where every backend states a limit; one without makes it unlimited."""
        if len(self._known) < len(self._backends):
            return {}
        stated = list(self._known.values())
        common = set.intersection(*(set(each) for each in stated)) if stated else set()
        return {name: sum((each[name] for each in stated), Fraction(0)) for name in common}

    async def run(self) -> None:
        """Ask every backend once a minute, until cancelled."""
        while True:
            before = self.total()
            for backend in self._backends.values():
                await self._ask(backend)
            if self.total() != before:
                self._on_change()
            await asyncio.sleep(ASK_SECONDS)

    async def _ask(self, backend: Backend) -> None:
        try:
            stated = (await backend.capacity()).resources
            self._known[backend.name] = {name: parse(amount) for name, amount in stated.items()}
        except (ProviderError, ValueError) as fault:
            logger.warning("backend %s: its capacity is unknown: %s", backend.name, fault)
