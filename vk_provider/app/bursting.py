"""The bursting side of the process: its own leader election, and one term for all controllers.

Whoever leads a node need not lead here: gates are moved from wherever the Lease is. A term that
ends takes everything with it; the next one reads where things stand from the cluster.
Fed by ``app.process``; runs what is in ``controllers``.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress

from vk_provider.app.api_observer import ApiObserver
from vk_provider.app.bounded import bounded
from vk_provider.app.bursting_options import Loop, everywhere, leading
from vk_provider.app.collector import forget_the_past
from vk_provider.app.leadership import Leadership
from vk_provider.app.read_secret import SecretReader
from vk_provider.bursting.situation import Rules
from vk_provider.bursting.spare import supply
from vk_provider.controllers.cluster_view import ClusterView
from vk_provider.controllers.deletion_costs import DeletionCosts
from vk_provider.controllers.gate import GateController
from vk_provider.controllers.means import ControllerMeans
from vk_provider.controllers.prometheus_client import PrometheusClient
from vk_provider.controllers.prometheus_signal import PrometheusReader
from vk_provider.kube.client import KubeClient
from vk_provider.kube.events import EventRecorder
from vk_provider.kube.transport import Identity
from vk_provider.loops.clock import SystemClock
from vk_provider.metrics import Metrics
from vk_provider.settings_bursting import BurstingSettings

logger = logging.getLogger(__name__)

CONNECTIONS = 8
LEASE_TIMEOUT_SECONDS = 5.0
AGAIN_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 60.0
CLOSE_SECONDS = 2.0
EVENTS_SECONDS = 1.0


class Bursting:
    """The controllers of one process, while it leads."""

    def __init__(
        self,
        settings: BurstingSettings,
        credentials: Identity,
        own_namespace: str,
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._credentials = credentials
        self._own_namespace = own_namespace
        self._metrics = metrics
        self._leadership: Leadership | None = None
        self._is_over = False
        self._failures = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``. Raises KubeError."""
        observer = ApiObserver(self._metrics)
        async with (
            KubeClient(self._credentials, connections=CONNECTIONS, observer=observer) as client,
            KubeClient(
                self._credentials,
                connections=1,
                timeout_seconds=LEASE_TIMEOUT_SECONDS,
                observer=observer,
            ) as lease_client,
        ):
            chosen = self._settings.leader_election
            self._leadership = Leadership(lease_client, chosen, self._own_namespace)
            async with asyncio.TaskGroup() as group:
                beside = self._beside(client, group)
                while await self._leadership.acquire(stop):
                    await self._lead(client, self._leadership, stop)
                    forget_the_past()
                for task in beside:
                    task.cancel()

    def unready(self) -> str | None:
        """Why this replica can't even wait to move gates."""
        return self._leadership.hopeless() if self._leadership is not None else None

    def _beside(self, client: KubeClient, group: asyncio.TaskGroup) -> Sequence[asyncio.Task[None]]:
        """What runs whether this replica leads or not; it writes nothing."""
        events = EventRecorder(client, socket.gethostname(), "vk-provider-bursting")
        means = ControllerMeans(
            client, SystemClock(), self._metrics, events, lambda: False, random.random
        )
        loops = everywhere(self._settings, means, self._own_namespace)
        return [group.create_task(work, name=f"bursting: {name}") for name, work in loops]

    async def _lead(self, client: KubeClient, leadership: Leadership, stop: asyncio.Event) -> None:
        """One term: until we are told to stop, leadership is lost or a controller fails.

        A bug of ours in here must not take the nodes along: the term ends, another one may try."""
        self._is_over = False
        events = EventRecorder(client, socket.gethostname(), "vk-provider-bursting")
        self._metrics.bursting.leader.set(1)
        logger.info("bursting: leading")
        working = asyncio.ensure_future(self._work(client, leadership, events))
        ends = [asyncio.ensure_future(stop.wait()), asyncio.ensure_future(leadership.keep())]
        try:
            await asyncio.wait({working, *ends}, return_when=asyncio.FIRST_COMPLETED)
            self._note(working)
        finally:
            self._is_over = True
            if stop.is_set() and not working.done():
                await bounded(events.drain(EVENTS_SECONDS), CLOSE_SECONDS, "the last Events")
            for task in (working, *ends):
                task.cancel()
            await asyncio.gather(working, *ends, return_exceptions=True)
            self._metrics.bursting.forget()
            await bounded(leadership.release(), CLOSE_SECONDS, "giving leadership up")
        pause = min(AGAIN_SECONDS * 2.0**self._failures, LONGEST_PAUSE_SECONDS)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), pause)

    def _note(self, working: asyncio.Future[None]) -> None:
        """Tell of a controller that failed; the pause before the next term grows with each."""
        fault = working.exception() if working.done() else None
        if fault is None:
            self._failures = 0
            return
        self._failures += 1
        self._metrics.internal_errors.labels("", "bursting").inc()
        logger.error("bursting: a controller failed; the nodes go on", exc_info=fault)

    async def _work(
        self, client: KubeClient, leadership: Leadership, events: EventRecorder
    ) -> None:
        means = ControllerMeans(
            client,
            SystemClock(),
            self._metrics,
            events,
            lambda: not self._is_over and leadership.is_ours(),
            random.random,
        )
        view = ClusterView(client, self._settings.selection)
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            prometheus = await self._prometheus(client, stack)
            loops = [
                ("events", events.run()),
                ("view", view.run()),
                *self._gates(means, view, prometheus),
                *leading(self._settings, means, view, prometheus, self._own_namespace),
            ]
            for name, work in loops:
                group.create_task(work, name=f"bursting: {name}")

    async def _prometheus(
        self, client: KubeClient, stack: AsyncExitStack
    ) -> PrometheusClient | None:
        if self._settings.prometheus is None:
            return None
        reader = SecretReader(client)
        return await stack.enter_async_context(
            PrometheusClient(self._settings.prometheus, reader.read)
        )

    def _gates(
        self, means: ControllerMeans, view: ClusterView, prometheus: PrometheusClient | None
    ) -> Iterator[Loop]:
        """Everything about the gates of all nodes, those of other processes, too."""
        settings, reader = self._settings, None
        if prometheus is not None and settings.prometheus is not None:
            reader = PrometheusReader(
                prometheus,
                settings.prometheus.queries,
                settings.selection.resource,
                lambda: supply(view.picture(), settings.selection).shapes,
                means.clock,
            )
            yield "Prometheus", reader.run(settings.prometheus.every)
        rules = Rules(
            settings.selection, settings.gate.limits, settings.homecoming, settings.gate.break_even
        )
        yield "gate", GateController(means, view, rules, settings.gate, reader).run()
        if settings.gate.deletion_cost is not None:
            yield "deletion costs", DeletionCosts(means, view, settings.gate.deletion_cost).run()
