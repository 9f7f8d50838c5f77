"""The second opinion: asks Prometheus every few seconds whether home has room.

It may only say no: it keeps pods from being moved, and never opens, closes or evicts. Fed by
``controllers.prometheus_client``; feeds ``controllers.gate``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from vk_provider.bursting.signals import PrometheusSignal
from vk_provider.faults import UnavailableError
from vk_provider.loops.clock import Clock
from vk_provider.settings_bursting_prometheus import PrometheusQueries

logger = logging.getLogger(__name__)


class Numbers(Protocol):
    """Who answers queries with one number; ``controllers.prometheus_client`` does."""

    async def number(self, promql: str) -> float | None:
        """The number; None where there is none. Raises UnavailableError."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """One complete answer, and when it was had by the steady clock."""

    signal: PrometheusSignal
    at: float


class PrometheusReader:
    """What Prometheus said last, and how old it is."""

    def __init__(
        self,
        client: Numbers,
        queries: PrometheusQueries,
        resource: str,
        shapes: Callable[[], Sequence[int]],
        clock: Clock,
    ) -> None:
        self.asked = asyncio.Event()
        """Set once it was asked, whatever the answer."""
        self._client = client
        self._queries = queries
        self._resource = resource
        self._shapes = shapes
        self._clock = clock
        self._reading: _Reading | None = None
        self._complaint = ""

    def signal(self) -> PrometheusSignal:
        """The last answer, aged by the time since."""
        if self._reading is None:
            return PrometheusSignal()
        signal, passed = self._reading.signal, self._clock.steady() - self._reading.at
        return replace(signal, age=(signal.age or 0.0) + passed)

    async def run(self, every: float) -> None:
        """Ask until cancelled."""
        while True:
            await self.ask()
            await asyncio.sleep(every)

    async def ask(self) -> None:
        """Ask once. A failure leaves the last answer to grow old."""
        began = self._clock.steady()
        try:
            signal = await self._read()
        except UnavailableError as fault:
            self._complain(str(fault))
        else:
            self._reading = _Reading(signal, began)
            self._complain("")
        self.asked.set()

    async def _read(self) -> PrometheusSignal:
        """Empty at the first query that gives nothing."""
        slots: dict[int, float] = {}
        nodes = await self._number(self._queries.home_nodes)
        waiting = await self._number(self._queries.training_waiting)
        for gpus in self._shapes():
            slots[gpus] = await self._number(self._queries.slots, gpus) or 0.0
        age = await self._number(self._queries.age) if self._queries.age else 0.0
        if nodes is None or waiting is None or age is None:
            return PrometheusSignal(age=0.0, is_empty=True)
        return PrometheusSignal(max(0.0, age), False, round(nodes), slots, waiting)

    async def _number(self, query: str, gpus: int = 1) -> float | None:
        return await self._client.number(filled_in(query, self._resource, gpus))

    def _complain(self, words: str) -> None:
        if words and words != self._complaint:
            logger.warning("the second signal is missing: %s", words)
        elif not words and self._complaint:
            logger.info("the second signal is back")
        self._complaint = words


def filled_in(query: str, resource: str, gpus: int = 1) -> str:
    """A query with its placeholders replaced: PromQL has braces of its own."""
    sanitized = "".join(c if c.isalnum() else "_" for c in resource)
    named = query.replace("{resource}", sanitized).replace("{resource_name}", resource)
    return named.replace("{gpus}", str(gpus))
