"""One virtual node, put together and run while this process leads.

The order of a start: providers, the kubelet port, the Node, its Lease, then pods and lists. The
order of a stop: nothing new begins, what is under way finishes, Ready stays as it is and the
instances run on; a second start adopts them. Fed by ``app.process``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vk_provider import __version__
from vk_provider.address import internal_address
from vk_provider.app.assembly import Assembly
from vk_provider.app.client_ca import ClientCA
from vk_provider.app.lookup import Lookup
from vk_provider.faults import VkProviderError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.credentials import Credentials
from vk_provider.kube.election import ElectionTimings, LeaderElection
from vk_provider.loops.clock import SystemClock
from vk_provider.loops.node_heartbeat import NodeHeartbeat
from vk_provider.loops.node_lease import NodeLease
from vk_provider.loops.shell import Shell
from vk_provider.metrics import Metrics
from vk_provider.node.object import NodeSpec
from vk_provider.server.app import KubeletOptions, KubeletServer
from vk_provider.server.auth import Gate
from vk_provider.server.reviewer import KubeReviewer
from vk_provider.server.tls import CertificateFiles, ServingNames, ServingTLS
from vk_provider.settings import NodeSettings

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 10.0
WRITE_CONNECTIONS = 24


class LeadershipLostError(VkProviderError):
    """Another replica may lead now: this process ends, so that nothing of it acts any more."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What the home cluster says of itself."""

    cluster_id: str
    version: str
    namespace: str


class VirtualNode:
    """The life of one node in this process: wait for leadership, lead, stop."""

    def __init__(self, settings: NodeSettings, credentials: Credentials, metrics: Metrics) -> None:
        self.leading = False
        self._waiting = False
        self.settings = settings
        self._credentials = credentials
        self._metrics = metrics
        self._election: LeaderElection | None = None
        self._stopping = False

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``. Raises ConfigError, KubeError (the cluster can't be asked at start),
        LeadershipLostError."""
        async with (
            KubeClient(self._credentials, connections=WRITE_CONNECTIONS) as client,
            KubeClient(self._credentials, connections=2, timeout_seconds=5.0) as lease_client,
        ):
            facts = await self._ask(client)
            if not await self._lead(lease_client, facts, stop):
                return
            await self._work(client, lease_client, facts, stop)

    def unready(self) -> str | None:
        """Why this replica is not ready. One that waits to lead is, or a rollout would not end."""
        return None if self.leading or self._waiting else "starting"

    def may_act(self) -> bool:
        """Whether this process surely leads now, by its own clock."""
        if self._stopping:
            return False
        return self._election is None or self._election.is_leader(time.monotonic())

    async def _ask(self, client: KubeClient) -> ClusterFacts:
        version = await client.get("/version")
        cluster_id = self.settings.cluster_id
        if cluster_id is None:
            found = await client.get(paths.namespace("kube-system"))
            cluster_id = found["metadata"]["uid"]
        namespace = self.settings.leader_election.namespace or self._credentials.namespace
        return ClusterFacts(cluster_id, version["gitVersion"], namespace)

    async def _lead(self, client: KubeClient, facts: ClusterFacts, stop: asyncio.Event) -> bool:
        """Wait for leadership; False if we were told to stop first."""
        chosen = self.settings.leader_election
        if not chosen.enabled:
            return True
        timings = ElectionTimings(
            chosen.lease_duration_seconds,
            chosen.renew_deadline_seconds,
            chosen.retry_period_seconds,
        )
        identity = f"{socket.gethostname()}_{os.getpid()}_{os.urandom(4).hex()}"
        election = LeaderElection(client, facts.namespace, chosen.name, identity, timings)
        self._waiting = True
        acquiring = asyncio.ensure_future(election.acquire())
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait({acquiring, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in (acquiring, stopping):
            task.cancel()
        await asyncio.gather(acquiring, stopping, return_exceptions=True)
        self._waiting = False
        if not acquiring.cancelled() and acquiring.exception() is None:
            self._election = election
            return True
        return False

    async def _work(
        self,
        client: KubeClient,
        lease_client: KubeClient,
        facts: ClusterFacts,
        stop: asyncio.Event,
    ) -> None:
        shell = Shell(SystemClock(), self._metrics, self.may_act)
        keeping = asyncio.ensure_future(self._keep())
        try:
            async with AsyncExitStack() as stack:
                node = Assembly(self.settings, client, shell, facts.cluster_id, self._address())
                await node.enter(stack)
                working = asyncio.ensure_future(
                    self._serve(node, client, lease_client, facts, stack)
                )
                await self._until(working, keeping, stop)
                await self._finish(node, shell, working)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            if self._election is not None:
                await self._election.release()

    async def _until(
        self, working: asyncio.Future[None], keeping: asyncio.Future[None], stop: asyncio.Event
    ) -> None:
        """Until we are told to stop, the work fails or leadership is lost (both raise)."""
        stopping = asyncio.ensure_future(stop.wait())
        waits: set[asyncio.Future[Any]] = {working, keeping, stopping}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if working.done():
            await working
        if keeping.done() and not stop.is_set():
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            raise LeadershipLostError(f"node {self.settings.name}: another replica leads")

    async def _finish(self, node: Assembly, shell: Shell, working: asyncio.Future[None]) -> None:
        self._stopping = True
        self.leading = False
        self._metrics.leader.labels(self.settings.name).set(0)
        logger.info("node %s: stopping; the instances run on", self.settings.name)
        await shell.drain(DRAIN_SECONDS)
        await node.events.drain()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        node.workers.close()

    async def _keep(self) -> None:
        if self._election is None:
            await asyncio.Event().wait()
        else:
            await self._election.keep()

    async def _serve(
        self,
        node: Assembly,
        client: KubeClient,
        lease_client: KubeClient,
        facts: ClusterFacts,
        stack: AsyncExitStack,
    ) -> None:
        """Everything that runs while leading; ends by cancellation or a fault."""
        authority = ClientCA(client, self.settings.server.tls.client_ca_file)
        await authority.load()
        server = self._server(node, client, authority)
        port = await server.start()
        stack.push_async_callback(server.close)
        spec = self._spec(facts, port)
        heartbeat = NodeHeartbeat(
            lease_client, spec, node.views.node_view, node.threshold, node.shell
        )
        await heartbeat.register()
        lease = NodeLease(
            lease_client,
            spec.name,
            lambda: heartbeat.node.get("metadata", {}).get("uid"),
            heartbeat.report_all,
            node.shell,
        )
        async with asyncio.TaskGroup() as group:
            for name, work in (
                ("lease", lease.run()),
                ("heartbeat", heartbeat.run()),
                ("client CA", authority.run()),
                *node.loops(),
            ):
                group.create_task(work, name=f"{spec.name}: {name}")
            self.leading = True
            self._metrics.leader.labels(spec.name).set(1)
            logger.info("node %s is up, kubelet port %d", spec.name, port)

    def _server(self, node: Assembly, client: KubeClient, authority: ClientCA) -> KubeletServer:
        given, name = self.settings.server, self.settings.name
        tls = given.tls
        files = None
        if tls.cert_file and tls.key_file:
            files = CertificateFiles(Path(tls.cert_file), Path(tls.key_file))
        serving = ServingTLS(ServingNames(name, lambda: [self._address()]), files, authority)
        gate = Gate(KubeReviewer(client), name)
        lookup = Lookup(node.cache, node.workers, node.backends, node.kept_logs)
        count = self._metrics.kubelet_requests
        options = KubeletOptions(
            port=given.port,
            observe=lambda route, code: count.labels(name, route, str(code)).inc(),
        )
        return KubeletServer(lookup, gate, serving, options)

    def _spec(self, facts: ClusterFacts, port: int) -> NodeSpec:
        settings = self.settings
        return NodeSpec(
            name=settings.name,
            capacity=settings.capacity,
            version=__version__,
            api_server_version=facts.version,
            cluster_id=facts.cluster_id,
            labels=settings.labels,
            taints=tuple(
                {"key": each.key, "value": each.value, "effect": each.effect}
                for each in settings.taints
            ),
            kubelet_port=port,
        )

    def _address(self) -> str:
        return internal_address(self.settings.server.address)
