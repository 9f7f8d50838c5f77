"""Another cluster behind the seam: each method is one translation and the calls it takes.

Fed by the core; rests on ``translate``, ``observe``, ``capacity`` (pure) and ``client`` (I/O).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Self

from vk_provider.faults import (
    ConfigError,
    FieldProblem,
    ForbiddenError,
    InstanceNotFoundError,
    ProviderError,
)
from vk_provider.kube.watch import Interrupted, Removed, Resumed, Synced, Upsert, WatchEvent
from vk_provider.pods.types import Json
from vk_provider.provider import (
    Explanation,
    InstanceEvent,
    InstanceRef,
    NodeCapacity,
    Observation,
    Offer,
    ProviderContext,
    ProviderTraits,
    ResolvedPod,
    Stamp,
)
from vk_provider_kubernetes import explain
from vk_provider_kubernetes import stamp as marks
from vk_provider_kubernetes.answers import call_fault
from vk_provider_kubernetes.capacity import room
from vk_provider_kubernetes.client import RemoteCluster
from vk_provider_kubernetes.config import DERIVED, HomeApi, KubernetesConfig, parse_config
from vk_provider_kubernetes.merging import merged
from vk_provider_kubernetes.observe import observe, removed
from vk_provider_kubernetes.reachability import Reachability
from vk_provider_kubernetes.references import Reference
from vk_provider_kubernetes.remote_events import RemoteEvents
from vk_provider_kubernetes.streams import RemoteStreams
from vk_provider_kubernetes.translate import translate

LIST_LAG_SECONDS = 1.0
"""Lists are consistent; the second is for two lists that began together."""
_PORT = "KUBERNETES_SERVICE_PORT"
_NO_HOME_API = (
    "missing, must be given where vk-provider does not run in the home cluster: "
    "{host: HOST, port: PORT} of its API server as the other cluster's pods reach it"
)


class KubernetesProvider(RemoteStreams):
    """One other cluster, and whatever its own kubelets can do."""

    def __init__(self, config: KubernetesConfig, context: ProviderContext) -> None:
        self._config = config
        self._context = context
        self._cluster = RemoteCluster(config, context.cluster_id, context.read_secret)
        self._reachability = Reachability(context.backend, config.lost_after_seconds)
        seconds = config.request_timeout_seconds
        self._traits = ProviderTraits(
            list_lag_seconds=LIST_LAG_SECONDS,
            create_timeout_seconds=4 * seconds,
            delete_timeout_seconds=2 * seconds,
            ended_is_free=True,
            starting_is_free=True,
            restarts_in_place=True,
            runs_probes=True,
            hands_on_tokens=config.tokens,
            reaches_services=config.home_services,
            follows_updates=True,
        )

    @property
    def traits(self) -> ProviderTraits:
        return self._traits

    async def __aenter__(self) -> Self:
        if self._config.tokens and self._config.home_api is None:
            path = f"{self._context.config_path}.serviceAccountTokens.apiServer"
            raise ConfigError([FieldProblem(path, _NO_HOME_API)])
        await self._cluster.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._cluster.__aexit__(*exc)

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        return explain.explain(pod, self._config)

    async def create_instance(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        found = translate(pod, self._config)
        writes = self._cluster.writes
        made = await writes.create_pod(found.body)
        reference = Reference.of(made)
        if found.copies:
            try:
                await writes.complete(found, made, pod.stamp)
            except ProviderError as fault:
                raise await writes.undo(reference, fault) from fault
        return InstanceRef(str(reference))

    async def refresh_instance(self, ref: InstanceRef, pod: ResolvedPod) -> None:
        """Bring copies, metadata and what may change in the spec up to date with home."""
        reference, found = Reference.read(ref), translate(pod, self._config)
        remote = await self._cluster.find_pod(reference)
        await self._cluster.writes.empty(found, reference)
        await self._cluster.writes.complete(found, remote, pod.stamp)

    async def delete_instance(self, ref: InstanceRef, grace_seconds: int) -> None:
        try:
            reference = Reference.read(ref)
        except InstanceNotFoundError:
            return
        # Grace 0 would take the pod from the API while its containers may run on.
        await self._cluster.writes.delete_pod(reference, max(1, grace_seconds))

    async def list_instances(self) -> Sequence[Observation]:
        try:
            pods = await self._cluster.list_pods()
        except ProviderError as fault:
            self._reachability.failed(str(fault))
            raise
        self._reachability.answered()
        now = datetime.now(UTC)
        owned = [(pod, stamp) for pod in pods if (stamp := _owner(pod, self._context))]
        return [observe(pod, stamp, now) for pod, stamp in owned]

    async def watch_instances(self) -> AsyncIterator[Observation]:
        watches = [self._cluster.watch_pods(each) for each in self._config.all_namespaces]
        async for event in merged(watches):
            seen = _seen(event, self._context, self._reachability)
            if seen is not None:
                yield seen

    async def watch_events(self) -> AsyncIterator[InstanceEvent]:
        namespaces = self._config.all_namespaces
        async for event in merged([_news(self._cluster, each) for each in namespaces]):
            yield event

    async def capacity(self) -> NodeCapacity:
        if self._config.capacity != DERIVED:
            return NodeCapacity()
        nodes, pods = await self._cluster.nodes_and_pods()
        return NodeCapacity(room(nodes, pods, self._context.cluster_id, self._config))


async def _news(cluster: RemoteCluster, namespace: str) -> AsyncIterator[InstanceEvent]:
    events = RemoteEvents()
    async for each in cluster.watch_events(namespace):
        if isinstance(each, Interrupted) and isinstance(each.fault, ForbiddenError):
            raise call_fault(each.fault)
        if (news := events.news(each)) is not None:
            yield news


def _seen(
    event: WatchEvent, context: ProviderContext, reachability: Reachability
) -> Observation | None:
    match event:
        case Upsert(obj=pod) | Removed(obj=pod):
            stamp = _owner(pod, context)
            if stamp is None:
                return None
            look = removed if isinstance(event, Removed) else observe
            return look(pod, stamp, datetime.now(UTC))
        case Interrupted(fault=fault):
            reachability.failed(str(fault))
        case Resumed() | Synced():
            reachability.answered()
    return None


def _owner(pod: Json, context: ProviderContext) -> Stamp | None:
    """Whose instance it is; None for what is not our home cluster's, whatever its labels, and for
    what another backend of our node has made in the same place."""
    stamp = marks.read(pod)
    if stamp is None or stamp.cluster_id != context.cluster_id:
        return None
    return None if marks.is_of_sibling(pod, context.node_name, context.backend) else stamp


def factory(config: Mapping[str, Any], context: ProviderContext) -> KubernetesProvider:
    """The entry point ``kubernetes``. Raises ``ConfigError`` with all problems."""
    parsed = parse_config(config, context.config_path, context.node_name, context.backend)
    if parsed.home_api is None:
        parsed = replace(parsed, home_api=_own_home_api())
    return KubernetesProvider(parsed, context)


def _own_home_api() -> HomeApi | None:
    """Where this process finds home's API server, if it runs in the home cluster."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get(_PORT, "")
    return HomeApi(host, int(port)) if host and port.isdecimal() else None
