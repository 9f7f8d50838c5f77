"""The loops of one node, wired to each other.

Fed by ``app.term`` with what was settled before (client, clocks, cluster id, address); offers the
loops to be run and the parts that others look at.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from vk_provider import registry
from vk_provider.app.intake import take_pods_in
from vk_provider.app.node_view import Views
from vk_provider.app.read_claim import ClaimReader
from vk_provider.app.read_secret import SecretReader
from vk_provider.app.readmission import Readmission
from vk_provider.kube.cache import PodCache
from vk_provider.kube.client import KubeClient
from vk_provider.kube.events import EventRecorder
from vk_provider.kube.references import ReferenceCache
from vk_provider.kube.services import Services
from vk_provider.kube.tokens import TokenSource
from vk_provider.kube.writer import StatusWriter
from vk_provider.loops.admitted import Admitted
from vk_provider.loops.backend import Backend
from vk_provider.loops.budget_watch import BudgetWatch
from vk_provider.loops.experience import Experience
from vk_provider.loops.instance_events import InstanceEvents
from vk_provider.loops.kept_logs import KeptLogs
from vk_provider.loops.means import Means
from vk_provider.loops.offered import Offered
from vk_provider.loops.pace import Pace
from vk_provider.loops.pod_actions import PodActions
from vk_provider.loops.pod_workers import PodWorkers
from vk_provider.loops.pod_world import NodeFacts
from vk_provider.loops.preparation import PreparationSettings, Preparer
from vk_provider.loops.pushes import Pushes
from vk_provider.loops.refreshing import Refresher
from vk_provider.loops.relist import Relist, RelistSettings
from vk_provider.loops.shell import Shell
from vk_provider.loops.spending import Spending
from vk_provider.loops.threshold import Threshold
from vk_provider.loops.unfollowed import Unfollowed
from vk_provider.node.door import Door, DoorLimits
from vk_provider.placement.cooling import Losses
from vk_provider.pods import desired
from vk_provider.pods.storm import StormGuard
from vk_provider.pods.types import Json, PodUID
from vk_provider.pods.world import BackendFacts, LifecycleLimits
from vk_provider.provider import Provider
from vk_provider.quantities import parse
from vk_provider.settings import NodeSettings, Reach
from vk_provider.settings_file import provider_context

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Of which cluster the node is, and the address at which it is found there."""

    cluster_id: str
    address: str


async def assemble(
    settings: NodeSettings,
    client: KubeClient,
    shell: Shell,
    where: Whereabouts,
    stack: AsyncExitStack,
) -> Assembly:
    """Open every provider (raises ConfigError, ProviderError) and wire the loops to them; the
    stack closes the providers."""
    given = SecretReader(client).read, ClaimReader(client).read, shell.may_act
    backends: dict[str, Backend] = {}
    for chosen in settings.backends:
        context = provider_context(settings, chosen, where.cluster_id, *given)
        provider = await stack.enter_async_context(registry.create(chosen, context))
        backends[chosen.name] = Backend(chosen, provider, settings.name, shell)
    return Assembly(settings, client, shell, where, backends)


class Assembly:
    """The parts of one running node, over backends whose providers are open."""

    def __init__(
        self,
        settings: NodeSettings,
        client: KubeClient,
        shell: Shell,
        where: Whereabouts,
        backends: Mapping[str, Backend],
    ) -> None:
        self.settings = settings
        self.shell = shell
        self.client = client
        self.where = where
        self.backends = backends
        self.kept_logs = KeptLogs()
        self.admitted = Admitted()
        self.seen_node: Callable[[], Json] = dict
        """The Node as the API server has it; empty before it was registered."""
        self.cache = PodCache(client, settings.name)
        self.events = EventRecorder(
            client,
            settings.name,
            observe=lambda why: shell.metrics.events_dropped.labels(shell.node, why).inc(),
        )
        self.threshold = _threshold(settings, shell)
        self.pace = Pace(StormGuard(settings.storm), shell)
        self.references = ReferenceCache(client, self._reference_changed)
        traits = [backend.provider.traits for backend in backends.values()]
        is_reaching = any(each.reaches_services for each in traits)
        self.services = Services(client) if is_reaching else None
        preparer = self._preparer()
        self.workers = PodWorkers(
            self._facts(), self.threshold, self.pace, self._actions(preparer), shell
        )
        self.threshold.spending.budget.grace = self._grace
        emit = self.events.emit
        self.refresher = Refresher(self.workers, preparer, backends, shell, emit)
        self.cache.subscribe(self.refresher.pod_changed)
        self.cache.subscribe(Unfollowed(self.workers, backends, emit).pod_changed)
        self.offered = Offered(backends, self.threshold.board.changed.set)
        self.relists = {name: self._relist(backend) for name, backend in backends.items()}
        self.views = Views(
            where.address, self.cache, self.threshold, shell, self.workers, self.offered,
            {name: (backends[name], relist) for name, relist in self.relists.items()},
        )  # fmt: skip

    def loops(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """Everything that runs for ever, by name."""
        yield "pods", self.cache.run()
        yield "references", self.references.run()
        if self.services is not None:
            yield "services", self.services.run()
        yield "events", self.events.run()
        yield "capacity", self.offered.run()
        yield (
            "intake",
            take_pods_in(
                self.cache, self.workers, self.pace, self.threshold.experience, self.shell.clock
            ),
        )
        for name, relist in self.relists.items():
            backend = self.backends[name]
            yield f"list {name}", relist.run()
            pushes = Pushes(backend, relist.belonging, self.workers, self.shell)
            yield f"watch {name}", pushes.run()
            told = InstanceEvents(backend, self.workers, self.events.emit, self.shell)
            yield f"events of {name}", told.run()
        yield "refresh", self.refresher.run()
        if self.threshold.spending.budget.limits.any:
            emit = self.events.emit
            watch = BudgetWatch(self.backends, self.workers, self.threshold, emit, self.shell)
            yield "budget", watch.run()

    def close(self) -> None:
        """Stop every timer."""
        self.workers.close()
        self.threshold.close()

    def _reference_changed(self, key: Any) -> None:
        owners = self.references.owners(key)
        self.workers.references_changed(owners)
        self.refresher.changed(owners)

    def _grace(self, uid: str) -> float:
        """How long a pod's containers may take to stop."""
        record = self.workers.records.get(PodUID(uid))
        return float(desired.grace_seconds(record.pod or {})) if record is not None else 0.0

    def _instance_made(self, uid: PodUID, pod: Json) -> None:
        self.refresher.made(uid, pod)

    def _facts(self) -> NodeFacts:
        settings = self.settings
        limits = LifecycleLimits(
            settings.pending_deadline_seconds,
            settings.confirm_deadline_seconds,
            backend_lost=settings.fail_after_backend_lost_seconds,
            start_deadline=settings.start_deadline_seconds,
        )
        return NodeFacts(
            name=settings.name,
            backends={
                name: _backend_facts(backend.provider) for name, backend in self.backends.items()
            },
            refusal=Readmission(settings, self.admitted, lambda: self.seen_node()).refusal,
            admitted=self.admitted,
            host_ip=self.where.address,
            direct=settings.reach is Reach.DIRECT,
            limits=limits,
        )

    def _preparer(self) -> Preparer:
        settings, backends = self.settings, self.backends
        is_handing_on = any(each.provider.traits.hands_on_tokens for each in backends.values())
        return Preparer(
            PreparationSettings(
                self.where.cluster_id,
                settings.name,
                self.where.address,
                settings.capacity,
                settings.placement.policy,
                settings.namespaces,
            ),
            backends,
            self.references,
            self.services,
            self.threshold,
            TokenSource(self.client, self.shell.clock.now) if is_handing_on else None,
        )

    def _actions(self, preparer: Preparer) -> PodActions:
        means = Means(
            self.client,
            StatusWriter(self.client, self.cache, may_write=self.shell.may_act),
            self.events,
            preparer,
            self.backends,
            self.kept_logs,
            self._instance_made,
        )
        return PodActions(means, self.threshold, self.shell)

    def _relist(self, backend: Backend) -> Relist:
        given = self._relist_settings(backend)
        return Relist(given, backend, self.workers, self.threshold, self.shell)

    def _relist_settings(self, backend: Backend) -> RelistSettings:
        settings = self.settings
        return RelistSettings(
            self.where.cluster_id,
            settings.name,
            settings.tick_seconds,
            settings.door.outage_after_seconds,
            settings.fail_after_backend_lost_seconds,
            _siblings(backend, self.backends.values()),
        )


def _siblings(backend: Backend, several: Iterable[Backend]) -> frozenset[str]:
    """Other backends of the same kind, which may have the same account, if ids are global."""
    if not backend.provider.traits.ids_are_global:
        return frozenset()
    same = [each.name for each in several if each.provider_name == backend.provider_name]
    return frozenset(same) - {backend.name}


def _backend_facts(provider: Provider) -> BackendFacts:
    traits = provider.traits
    return BackendFacts(
        traits.ended_is_free,
        traits.restarts_in_place,
        traits.runs_probes,
        traits.follows_updates,
    )


def _threshold(settings: NodeSettings, shell: Shell) -> Threshold:
    spending = Spending(settings.placement.budget, shell, settings.tick_seconds)
    return Threshold(_door(settings), shell, spending, Experience(shell, _losses(settings)))


def _door(settings: NodeSettings) -> Door:
    given = settings.door
    limits = DoorLimits(
        given.first_cooldown_seconds, given.max_cooldown_seconds, given.denied_cooldown_seconds
    )
    pods = int(parse(settings.capacity.get("pods", "110")))
    return Door.over([backend.name for backend in settings.backends], pods, limits)


def _losses(settings: NodeSettings) -> Losses:
    door = settings.door
    return Losses(
        door.first_cooldown_seconds,
        door.max_cooldown_seconds,
        has_elsewhere=len(settings.backends) > 1,
    )
