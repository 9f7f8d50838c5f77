"""One virtual node in this process: wait for leadership, lead, and wait again when it was lost.

A process outlives an outage of the API server: leadership ends with it, and with it the term;
nothing is written then. When the API server is back a new term rebuilds everything from two lists.
Fed by ``app.process``.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from vk_provider.app.api_observer import ApiObserver
from vk_provider.app.collector import forget_the_past
from vk_provider.app.leadership import Leadership
from vk_provider.app.term import Clients, ClusterFacts, LeadershipLostError, Term
from vk_provider.faults import KubeUnavailableError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.transport import Identity
from vk_provider.metrics import Metrics
from vk_provider.settings import NodeSettings

logger = logging.getLogger(__name__)

WRITE_CONNECTIONS = 24
LEASE_TIMEOUT_SECONDS = 5.0
AGAIN_SECONDS = 2.0


class VirtualNode:
    """The life of one node in this process."""

    def __init__(
        self, settings: NodeSettings, credentials: Identity, own_namespace: str, metrics: Metrics
    ) -> None:
        self.settings = settings
        self._credentials = credentials
        self._own_namespace = own_namespace
        self._metrics = metrics
        self._leadership: Leadership | None = None
        self._term: Term | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``. Raises ConfigError, KubeError (the cluster can't be asked at start)."""
        observer = ApiObserver(self._metrics)
        self._metrics.leader.labels(self.settings.name).set(0)
        async with (
            KubeClient(
                self._credentials, connections=WRITE_CONNECTIONS, observer=observer
            ) as client,
            KubeClient(
                self._credentials,
                connections=2,
                timeout_seconds=LEASE_TIMEOUT_SECONDS,
                observer=observer,
            ) as lease_client,
        ):
            facts = await self._ask(client)
            clients = Clients(client, lease_client)
            chosen = self.settings.leader_election
            self._leadership = Leadership(lease_client, chosen, self._own_namespace)
            while await self._leadership.acquire(stop):
                term = Term(self.settings, clients, self._leadership, facts, self._metrics)
                await self._lead(term, stop)
                del term
                forget_the_past()

    def unready(self) -> str | None:
        """Why this replica is not ready. One that waits to lead is, or a rollout would not end;
        one that may not even wait is not."""
        if self._leadership is None:
            return "starting"
        if self._leadership.is_waiting:
            return self._leadership.hopeless()
        return self._term.unready() if self._term is not None else "starting"

    def stuck(self) -> str | None:
        """The loop that has not turned for too long; an outage of anybody else is none."""
        return self._term.shell.stuck() if self._term is not None else None

    async def _lead(self, term: Term, stop: asyncio.Event) -> None:
        self._term = term
        try:
            await term.run(stop)
        except (LeadershipLostError, KubeUnavailableError) as fault:
            logger.warning("%s; waiting to lead again", fault)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), AGAIN_SECONDS)
        finally:
            self._term = None

    async def _ask(self, client: KubeClient) -> ClusterFacts:
        version = await client.get("/version")
        cluster_id = self.settings.cluster_id
        if cluster_id is None:
            found = await client.get(paths.namespace("kube-system"))
            cluster_id = found["metadata"]["uid"]
        return ClusterFacts(cluster_id, version["gitVersion"])
