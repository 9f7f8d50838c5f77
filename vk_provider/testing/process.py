"""``ProcessProvider``: the seam over local processes, for development and tests.

Also the entry point ``process``; never a default, since **nothing is isolated**: a container is a
process with the rights of whoever runs the provider, in a folder of its own, which is its working
directory, HOME and TMPDIR. It gives logs, exec, attach, port-forward and stats something real
without a container engine::

    backends:
      - name: local
        provider: process
        config: {service: local, images: {"busybox": [sh]}, mapPorts: true}

Files and ``emptyDir`` volumes lie below the container's folder: ``mountPath: /etc/app`` is
``etc/app`` for the process and for ``kubectl cp``. Instances end with the process that made them.
Fed by the core; speaks to a :class:`.process_service.ProcessService`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Self

from vk_provider.faults import NotSupportedError
from vk_provider.pods.types import (
    Explanation,
    InstanceRef,
    LogLine,
    LogOptions,
    NodeCapacity,
    Observation,
    Offer,
    ResolvedPod,
)
from vk_provider.provider import ProviderContext, ProviderTraits
from vk_provider.streams import (
    AttachRequest,
    ContainerIO,
    ExecRequest,
    InstanceStats,
    PortConnection,
)
from vk_provider.testing.process_config import ProcessConfig, parse_config
from vk_provider.testing.process_instance import Order
from vk_provider.testing.process_ports import connect
from vk_provider.testing.process_service import ProcessService
from vk_provider.testing.process_sessions import attach_to, run_command
from vk_provider.testing.process_stats import Processes, stats_of
from vk_provider.testing.process_translate import explained, plan_for

__all__ = ["ProcessConfig", "ProcessProvider", "ProcessService", "close_services", "factory"]

_SHARED: dict[str, ProcessService] = {}
"""The services that were given a name, for as long as their loop runs."""


def factory(config: Mapping[str, Any], context: ProviderContext) -> ProcessProvider:
    """The entry point ``process``. Raises ``ConfigError`` with all problems of the block."""
    parsed = parse_config(config, context.config_path)
    if parsed.service is None:
        return ProcessProvider(ProcessService(parsed), context.cluster_id, owns_service=True)
    service = _SHARED.setdefault(parsed.service, ProcessService(parsed))
    service.abandon_if_stale()
    return ProcessProvider(service, context.cluster_id)


async def close_services() -> None:
    """Kill whatever the services with a name hold, and forget them."""
    while _SHARED:
        _, service = _SHARED.popitem()
        service.abandon_if_stale()
        await service.close()


class _Streams:
    """What is spoken to running containers."""

    def __init__(self, service: ProcessService, cluster_id: str) -> None:
        self.service = service
        self._cluster_id = cluster_id

    async def exec(self, ref: InstanceRef, request: ExecRequest, io: ContainerIO) -> int:
        """Run a command in the container's folder and environment, in a session of its own."""
        return await run_command(self.service.find(ref), request, io)

    async def attach(self, ref: InstanceRef, request: AttachRequest, io: ContainerIO) -> int | None:
        """Join the container's own streams, from now on."""
        return await attach_to(self.service.find(ref), request, io)

    async def open_port(self, ref: InstanceRef, port: int) -> PortConnection:
        """A connection to this machine's loopback, to the port that ``mapPorts`` gave."""
        instance = self.service.find(ref)
        return await connect(ref.id, port, instance.ports.get(port, port))

    async def read_stats(self) -> tuple[InstanceStats, ...]:
        """What the processes of our cluster's instances use now."""
        processes, found = Processes.look(), []
        for instance in list(self.service.instances.values()):
            if instance.stamp is not None and instance.stamp.cluster_id == self._cluster_id:
                found.append(stats_of(instance, instance.stamp, processes))
                # A look at many processes takes a while; streams go on in between.
                await asyncio.sleep(0)
        return tuple(found)

    async def read_logs(
        self, ref: InstanceRef, container: str, options: LogOptions
    ) -> AsyncIterator[LogLine]:
        """What a container has written, and with ``follow`` what it writes until it ends."""
        self.service.script.check("logs")
        if options.previous:
            raise NotSupportedError("the process provider never restarts a container")
        found = self.service.find(ref).find(container)
        if found.output is None:
            return
        async with aclosing(found.output.log.read(options)) as lines:
            async for line in lines:
                yield line


class ProcessProvider(_Streams):
    """One node's connection to a process service. Several may share the service."""

    traits = ProviderTraits(list_lag_seconds=0.0, ended_is_free=True, starting_is_free=True)

    def __init__(
        self, service: ProcessService, cluster_id: str, *, owns_service: bool = False
    ) -> None:
        super().__init__(service, cluster_id)
        self._owns_service = owns_service

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        # A service without a name is nobody else's, and its processes could never be found again.
        if self._owns_service:
            await self.service.close()

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        """The create call's body, masked."""
        return explained(pod, self.service.config)

    async def create_instance(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        """Make one instance; its processes start at once, in the pod's order."""
        plan = plan_for(pod, self.service.config)
        return await self.service.create(Order(pod.stamp, plan, plan.request(pod.stamp)))

    async def delete_instance(self, ref: InstanceRef, grace_seconds: int) -> None:
        """SIGTERM, and SIGKILL after the grace; then the folder goes too."""
        await self.service.delete(ref, grace_seconds)

    async def list_instances(self) -> Sequence[Observation]:
        """All instances of our cluster."""
        return await self.service.list(self._cluster_id)

    async def capacity(self) -> NodeCapacity:
        """As configured."""
        self.service.script.check("capacity")
        return NodeCapacity(self.service.config.capacity)

    async def watch_instances(self) -> AsyncIterator[Observation]:
        """Changes at the moment they happen."""
        async with aclosing(self.service.watch(self._cluster_id)) as changes:
            async for observation in changes:
                yield observation
