"""Logs, exec, attach, ports and usage of instances: passed through, nothing is kept here.

Fed by the kubelet server through ``provider``; speaks through ``client``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from vk_provider.faults import InstanceNotFoundError
from vk_provider.kube import paths
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.provider import (
    AttachRequest,
    ContainerIO,
    ExecRequest,
    InstanceRef,
    InstanceStats,
    LogLine,
    LogOptions,
    PortConnection,
)
from vk_provider_kubernetes import logs, stats
from vk_provider_kubernetes.client import RemoteCluster
from vk_provider_kubernetes.commands import converse
from vk_provider_kubernetes.ports import open_port
from vk_provider_kubernetes.references import Reference
from vk_provider_kubernetes.upstream import Upstream


class RemoteStreams:
    """What a kubelet serves of running pods, asked of another cluster's kubelets."""

    _cluster: RemoteCluster

    async def read_logs(
        self, ref: InstanceRef, container: str, options: LogOptions
    ) -> AsyncIterator[LogLine]:
        """Lines as the other cluster's kubelet keeps them."""
        path = _path(Reference.read(ref), "log")
        async for line in logs.read_logs(self._upstream, path, container, options):
            yield line

    async def exec(self, ref: InstanceRef, request: ExecRequest, io: ContainerIO) -> int:
        """Run a command; its exit code."""
        reference = await self._container(ref, request.container)
        code = await converse(self._upstream, _path(reference, "exec"), request, io)
        return code or 0

    async def attach(self, ref: InstanceRef, request: AttachRequest, io: ContainerIO) -> int | None:
        """Join a container's own streams."""
        reference = await self._container(ref, request.container)
        return await converse(self._upstream, _path(reference, "attach"), request, io)

    async def open_port(self, ref: InstanceRef, port: int) -> PortConnection:
        """Connect to a port of the pod."""
        reference = Reference.read(ref)
        await self._cluster.find_pod(reference)
        return await open_port(self._upstream, _path(reference, "portforward"), port)

    async def read_stats(self) -> tuple[InstanceStats, ...]:
        """What the other cluster's metrics API measured."""
        return tuple(stats.read_stats(await self._cluster.pod_metrics()))

    @property
    def _upstream(self) -> Upstream:
        return self._cluster.upstream

    async def _container(self, ref: InstanceRef, container: str) -> Reference:
        """The pod of an instance, once it is sure that it is that one and has this container."""
        reference = Reference.read(ref)
        spec = mapping(await self._cluster.find_pod(reference), "spec")
        fields = ("containers", "initContainers", "ephemeralContainers")
        names = {text(each, "name") for name in fields for _, each in mappings(spec, name)}
        if container not in names:
            raise InstanceNotFoundError(f"pod {reference} has no container {container}")
        return reference


def _path(reference: Reference, subresource: str) -> str:
    return f"{paths.pod(reference.namespace, reference.name)}/{subresource}"
