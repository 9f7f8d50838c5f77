"""What is spoken to running containers: exec, port-forward and cp over SSH, attach, logs, usage.

Fed by the core's kubelet API; rests on ``commands`` and ``ports``, which need the extra ``ssh``,
and on ``attaching`` and ``logs``, which don't.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING

from vk_provider.faults import NotSupportedError, ProviderError
from vk_provider.pods.types import InstanceRef, LogLine, LogOptions
from vk_provider.streams import (
    AttachRequest,
    ContainerIO,
    ExecRequest,
    InstanceStats,
    PortConnection,
)
from vk_provider_runpod import attaching, logs
from vk_provider_runpod.cgroups import Usage
from vk_provider_runpod.client import RunPodClient
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.ssh_access import NOT_CONFIGURED
from vk_provider_runpod.stats import running, stats_of

if TYPE_CHECKING:
    from vk_provider_runpod.measuring import Measuring
    from vk_provider_runpod.ssh import Connections, KeyPair

NOT_INSTALLED = (
    "`ssh` is configured, but the SSH client is not installed: "
    "pip install 'vk-provider[ssh]' (the container image has it)"
)
ANY_KEY = "(the public half of ssh.privateKey)"


class Shells:
    """The SSH side of one account, as far as it is configured and installed."""

    def __init__(
        self, config: RunPodConfig, client: RunPodClient, read_key: Callable[[], Awaitable[str]]
    ) -> None:
        self._connections: Connections | None = None
        self._keys: KeyPair | None = None
        self._measuring: Measuring | None = None
        self.refusal = NOT_CONFIGURED
        self.public_key: str | None = None
        """What instances are told, as far as it is known; None where nobody logs in."""
        if config.ssh is None:
            return
        self.public_key = ANY_KEY
        try:
            # Only whoever logs in needs the client: it is large, and an extra.
            from vk_provider_runpod.measuring import Measuring
            from vk_provider_runpod.ssh import Connections, KeyPair
        except ImportError:
            self.refusal, self.public_key = NOT_INSTALLED, None
            return
        self._keys = KeyPair(read_key)
        self._connections = Connections(config.ssh, self._keys, client.get_pod)
        self._measuring = Measuring(self._connections)

    @property
    def can_log_in(self) -> bool:
        """Whether that is configured, and its client installed."""
        return self._connections is not None

    @property
    def connections(self) -> Connections:
        """Raises ``NotSupportedError`` where nobody logs in."""
        if self._connections is None:
            raise NotSupportedError(self.refusal)
        return self._connections

    async def refresh(self) -> str | None:
        """The public key as it is now. Raises ``DeniedError``, ``UnavailableError``."""
        if self._keys is not None:
            self.public_key = await self._keys.public()
        return self.public_key

    async def open(self) -> None:
        """Learn the public key, if it can be had; whoever needs it asks again."""
        try:
            await self.refresh()
        except ProviderError:
            return

    async def measure(self, containers: Mapping[str, str]) -> Mapping[str, Usage]:
        """What containers use, by instance, of those that let us in."""
        return {} if self._measuring is None else await self._measuring.measure(containers)

    async def close(self) -> None:
        """End all connections."""
        if self._connections is not None:
            await self._connections.close()

    def keep(self, ids: Collection[str]) -> None:
        """Only these instances live."""
        if self._connections is not None:
            self._connections.keep(ids)


class RunPodStreams:
    """The seam's optional protocols."""

    def __init__(
        self, config: RunPodConfig, client: RunPodClient, shells: Shells, cluster_id: str
    ) -> None:
        self._config = config
        self._client = client
        self._shells = shells
        self._cluster_id = cluster_id

    async def exec(self, ref: InstanceRef, request: ExecRequest, io: ContainerIO) -> int:
        """Over SSH. Raises ``NotSupportedError`` where that is not set up or not offered."""
        connections = self._shells.connections
        from vk_provider_runpod.commands import Session

        return await Session(connections, ref, request).run(io)

    async def attach(self, ref: InstanceRef, request: AttachRequest, io: ContainerIO) -> int | None:
        """What the container prints from now on; RunPod tells no exit code."""
        await attaching.attach(self._client, ref, request, io)
        return None

    async def open_port(self, ref: InstanceRef, port: int) -> PortConnection:
        """Over SSH, to the container's loopback."""
        connections = self._shells.connections
        from vk_provider_runpod.ports import open_port

        return await open_port(connections, ref, port)

    async def read_stats(self) -> tuple[InstanceStats, ...]:
        """What RunPod's list tells, and what the containers tell that let us in."""
        pods, now = await self._client.list_pods()
        instances = running(pods, self._cluster_id)
        containers = {key: mark.container for key, (mark, _) in instances.items()}
        return stats_of(instances, await self._shells.measure(containers), now)

    def read_logs(
        self, ref: InstanceRef, container: str, options: LogOptions
    ) -> AsyncIterator[LogLine]:
        """Of the one container there is."""
        if options.previous:
            raise NotSupportedError("RunPod keeps no log of a previous container")
        return logs.read_logs(self._client, ref.id, options)
