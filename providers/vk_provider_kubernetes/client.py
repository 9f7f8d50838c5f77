"""What is asked of the other cluster's API server, one method each; faults in the seam's words.

Fed by ``provider``; speaks through the product's own thin client of the Kubernetes API. What is
written there is in :mod:`.writes`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Self

from vk_provider.faults import (
    InstanceNotFoundError,
    KubeError,
    KubeNotFoundError,
)
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.identity import Credentials
from vk_provider.kube.watch import WatchEvent, watch
from vk_provider.pods.types import Json
from vk_provider.secrets import ReadSecret
from vk_provider_kubernetes import stamp as marks
from vk_provider_kubernetes.answers import call_fault
from vk_provider_kubernetes.config import KubernetesConfig
from vk_provider_kubernetes.connection import connect
from vk_provider_kubernetes.references import Reference
from vk_provider_kubernetes.remote_events import FIELDS
from vk_provider_kubernetes.upstream import Upstream
from vk_provider_kubernetes.writes import Writes, asked

_METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces"


class RemoteCluster:
    """One identity in one other cluster. Use as an async context manager."""

    upstream: Upstream
    writes: Writes

    def __init__(
        self, config: KubernetesConfig, cluster_id: str, read_secret: ReadSecret | None
    ) -> None:
        self._config = config
        self._selector = marks.selector(cluster_id)
        self._read_secret = read_secret
        self._stack = AsyncExitStack()
        self._client: KubeClient | None = None

    async def __aenter__(self) -> Self:
        identity: Credentials = await connect(self._config, self._read_secret)
        seconds = self._config.request_timeout_seconds
        client = KubeClient(identity, timeout_seconds=seconds)
        self._client = await self._stack.enter_async_context(client)
        self.writes = Writes(client)
        self.upstream = await self._stack.enter_async_context(Upstream(identity, seconds))
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    async def list_pods(self) -> list[Json]:
        """All pods of our home cluster in all our namespaces. One call each, in pages."""
        found: list[Json] = []
        for namespace in self._config.all_namespaces:
            items, _ = await asked(
                self._kube.list(paths.pods(namespace), retry=False, labelSelector=self._selector)
            )
            found += items
        return found

    def watch_pods(self, namespace: str) -> AsyncIterator[WatchEvent]:
        """Their changes, for ever."""
        return watch(self._kube, paths.pods(namespace), label_selector=self._selector)

    def watch_events(self, namespace: str) -> AsyncIterator[WatchEvent]:
        """Events about pods of a namespace, ours and others'."""
        return watch(self._kube, paths.events(namespace), field_selector=FIELDS)

    async def find_pod(self, reference: Reference) -> Json:
        """One instance. Raises ``InstanceNotFoundError`` also for another one of its name."""
        pod = await asked(self._kube.get(paths.pod(reference.namespace, reference.name)))
        if Reference.of(pod) != reference:
            raise InstanceNotFoundError(f"pod {reference} of the other cluster is gone")
        return pod

    async def nodes_and_pods(self) -> tuple[list[Json], list[Json]]:
        """All of the other cluster, for its capacity."""
        nodes, _ = await asked(self._kube.list(paths.nodes()))
        pods, _ = await asked(self._kube.list(paths.pods()))
        return list(nodes), list(pods)

    async def pod_metrics(self) -> list[Json]:
        """What metrics.k8s.io says of our instances; nothing where nobody serves it."""
        found: list[Json] = []
        for namespace in self._config.all_namespaces:
            path = f"{_METRICS}/{namespace}/pods"
            try:
                answer = await self._kube.get(path, labelSelector=self._selector)
            except KubeNotFoundError:
                return []
            except KubeError as fault:
                raise call_fault(fault) from fault
            found += answer.get("items") or ()
        return found

    @property
    def _kube(self) -> KubeClient:
        if self._client is None:
            raise RuntimeError("RemoteCluster is used outside of `async with`")
        return self._client
