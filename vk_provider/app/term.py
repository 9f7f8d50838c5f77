"""One term of leadership: everything of a node runs from its beginning to its end.

The order of a start: providers, the kubelet port, the Node, its Lease, then pods and lists. The
order of a stop: nothing new begins, what is under way finishes, Ready stays as it is and the
instances run on. Nothing of a term acts after its end. Fed by ``app.virtual_node``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vk_provider import __version__
from vk_provider.address import internal_address
from vk_provider.app.assembly import Assembly, Whereabouts, assemble
from vk_provider.app.bounded import bounded
from vk_provider.app.client_ca import ClientCA
from vk_provider.app.leadership import Leadership
from vk_provider.app.lookup import Lookup
from vk_provider.faults import ConfigError, FieldProblem, VkProviderError
from vk_provider.kube.client import KubeClient
from vk_provider.loops.clock import SystemClock
from vk_provider.loops.dead_man import DeadMan
from vk_provider.loops.node_heartbeat import NodeHeartbeat
from vk_provider.loops.node_lease import NodeLease
from vk_provider.loops.node_watch import NodeWatch
from vk_provider.loops.shell import Shell
from vk_provider.loops.spend_saving import save_spend
from vk_provider.metrics import Metrics
from vk_provider.node.object import NodeSpec
from vk_provider.server.app import KubeletOptions, KubeletServer
from vk_provider.server.auth import Authorizer
from vk_provider.server.reviewer import KubeReviewer
from vk_provider.server.serving_request import ServingRequest
from vk_provider.server.tls import CertificateFiles, ServingNames, ServingTLS
from vk_provider.settings import NodeSettings

logger = logging.getLogger(__name__)

FINISH_SECONDS = 6.0
EVENTS_SECONDS = 2.0
CLOSE_SECONDS = 2.0


class LeadershipLostError(VkProviderError):
    """Another replica may lead now: nothing of this term acts any more."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What the home cluster says of itself."""

    cluster_id: str
    version: str


@dataclass(frozen=True, slots=True)
class Clients:
    """The node's own connections; its Leases have theirs, so that they never queue for pods."""

    pods: KubeClient
    leases: KubeClient


class Term:
    """From leadership won to leadership lost, or to a stop."""

    def __init__(
        self,
        settings: NodeSettings,
        clients: Clients,
        leadership: Leadership,
        facts: ClusterFacts,
        metrics: Metrics,
    ) -> None:
        self.is_up = False
        self.shell = Shell(SystemClock(), metrics, self.may_act, node=settings.name)
        self._is_over = False
        self._settings = settings
        self._clients = clients
        self._leadership = leadership
        self._facts = facts
        self._metrics = metrics
        self._node: Assembly | None = None
        self._request: ServingRequest | None = None
        if settings.server.tls.csr:
            self._request = ServingRequest(clients.pods, settings.name, lambda: [self._address()])

    def may_act(self) -> bool:
        """Whether anything of this term may still be created, deleted or written."""
        return not self._is_over and self._leadership.is_ours()

    def unready(self) -> str | None:
        """Why this term does not serve yet."""
        if not self.is_up or self._node is None:
            return "starting"
        cache = self._node.cache
        if not cache.synced.is_set():
            return f"pods were not listed yet: {cache.fault or 'no answer so far'}"
        return None

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``. Raises ConfigError, KubeError, LeadershipLostError."""
        keeping = asyncio.ensure_future(self._leadership.keep())
        stack = AsyncExitStack()
        working = asyncio.ensure_future(self._serve(stack))
        try:
            await self._until(working, keeping, stop)
        finally:
            await self._finish(working, in_peace=stop.is_set())
            await bounded(stack.aclose(), CLOSE_SECONDS, "closing the backends and the port")
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await bounded(self._leadership.release(), CLOSE_SECONDS, "giving leadership up")

    async def _until(
        self, working: asyncio.Future[None], keeping: asyncio.Future[None], stop: asyncio.Event
    ) -> None:
        """Until we are told to stop, the work fails or leadership is lost (both raise)."""
        stopping = asyncio.ensure_future(stop.wait())
        waits: set[asyncio.Future[Any]] = {working, keeping, stopping}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        if stop.is_set():
            return
        if keeping.done():
            raise LeadershipLostError(f"node {self._settings.name}: leadership was lost")
        await working

    async def _finish(self, working: asyncio.Future[None], *, in_peace: bool) -> None:
        self._is_over, self.is_up = True, False
        self._metrics.leader.labels(self._settings.name).set(0)
        if in_peace:
            logger.info("node %s: stopping; the instances run on", self._settings.name)
        await self.shell.drain(FINISH_SECONDS if in_peace else 0.0)
        node = self._node
        if node is not None and in_peace and not working.done():
            await node.events.drain(EVENTS_SECONDS)
        working.cancel()
        await asyncio.wait({working}, timeout=CLOSE_SECONDS)
        if working.done() and not working.cancelled():
            working.exception()  # it was raised, or it no longer matters
        if node is not None:
            node.close()

    async def _serve(self, stack: AsyncExitStack) -> None:
        """Everything that runs while leading; ends by cancellation or a fault."""
        where = Whereabouts(self._facts.cluster_id, self._address())
        pods = self._clients.pods
        node = self._node = await assemble(self._settings, pods, self.shell, where, stack)
        authority = ClientCA(self._clients.pods, self._settings.server.tls.client_ca_file)
        await authority.load()
        server = self._server(node, authority)
        port = await self._listen(server)
        stack.push_async_callback(server.close)
        leases, spec = self._clients.leases, self._spec(port)
        heartbeat = NodeHeartbeat(
            leases, spec, node.views.node_view, node.threshold, self.shell,
            min(10.0, self._settings.tick_seconds),
        )  # fmt: skip
        await heartbeat.register()
        node.seen_node = lambda: heartbeat.node
        stack.push_async_callback(_save_spend, leases, self._leadership, node)
        lease = NodeLease(leases, spec.name, heartbeat.uid, heartbeat.report_all, self.shell)
        async with asyncio.TaskGroup() as group:
            for name, work in (
                ("lease", lease.run()),
                ("heartbeat", heartbeat.run()),
                ("node", NodeWatch(leases, spec.name, heartbeat).run()),
                ("client CA", authority.run()),
                *node.loops(),
                *self._own_loops(heartbeat),
            ):
                group.create_task(work, name=f"{spec.name}: {name}")
            self.is_up = True
            self._metrics.leader.labels(spec.name).set(1)
            logger.info("node %s is up, kubelet port %d", spec.name, port)

    async def _listen(self, server: KubeletServer) -> int:
        try:
            return await server.start()
        except OSError as error:
            message = f"can't listen on {self._settings.server.port}: {error}"
            raise ConfigError([FieldProblem("spec.server.port", message)]) from error

    def _server(self, node: Assembly, authority: ClientCA) -> KubeletServer:
        given, name = self._settings.server, self._settings.name
        files = None
        if given.tls.cert_file and given.tls.key_file:
            files = CertificateFiles(Path(given.tls.cert_file), Path(given.tls.key_file))
        names = ServingNames(name, lambda: [self._address()])
        if self._request is None:
            serving = ServingTLS(names, files, authority)
        else:
            serving = ServingTLS(names, files, authority, signed=self._request)
        authorizer = Authorizer(KubeReviewer(self._clients.pods), name)
        lookup = Lookup(node.cache, node.workers, node.backends, node.kept_logs)
        count = self._metrics.kubelet_requests
        options = KubeletOptions(
            port=given.port,
            checks={"syncloop": self.shell.stuck},
            observe=lambda route, code: count.labels(name, route, str(code)).inc(),
            node_name=name,
            registry=self._metrics.registry,
        )
        return KubeletServer(lookup, authorizer, serving, options)

    def _own_loops(
        self, heartbeat: NodeHeartbeat
    ) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """Those that only some nodes want."""
        if self._request is not None:
            yield "serving certificate", self._request.run()
        given = self._settings.bursting
        if given.gate_enabled:
            leases, seen = self._clients.leases, given.dead_after_seconds
            yield "dead man", DeadMan(leases, lambda: heartbeat.node, seen, self.shell).run()

    def _spec(self, port: int) -> NodeSpec:
        settings = self._settings
        return NodeSpec(
            name=settings.name,
            capacity=settings.capacity,
            version=__version__,
            api_server_version=self._facts.version,
            cluster_id=self._facts.cluster_id,
            labels=settings.labels,
            taints=tuple(
                {"key": each.key, "value": each.value, "effect": each.effect}
                for each in settings.permanent_taints
            ),
            kubelet_port=port,
            is_gated=settings.bursting.gate_enabled,
        )

    def _address(self) -> str:
        return internal_address(self._settings.server.address)


async def _save_spend(client: KubeClient, leadership: Leadership, node: Assembly) -> None:
    """Nothing is written when somebody else may lead."""
    if leadership.is_ours():
        await save_spend(client, node.settings.name, node.threshold.spend_memory)
