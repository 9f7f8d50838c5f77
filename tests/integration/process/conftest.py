"""A process service in a folder of its own, and a provider that speaks to it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.eventually import eventually
from vk_provider.pods.types import (
    IMPLICIT_OFFER,
    ContainerObservation,
    InstancePhase,
    InstanceRef,
    LogLine,
    LogOptions,
    Observation,
)
from vk_provider.streams import ExecRequest
from vk_provider.testing.builders import CLUSTER_ID, make_container, make_resolved_pod, make_stamp
from vk_provider.testing.contract_client import ScriptedClient
from vk_provider.testing.process import ProcessConfig, ProcessProvider, ProcessService
from vk_provider.testing.process_observe import observe


@dataclass
class Bench:
    """A provider, its service, and shorthands for what tests do."""

    provider: ProcessProvider
    service: ProcessService
    _names: list[str] = field(default_factory=list)

    async def create(self, *containers: dict[str, Any], **pod: Any) -> InstanceRef:
        """Make an instance of these containers."""
        self._names.append(f"app-{len(self._names)}")
        resolved = make_resolved_pod(self._names[-1], containers=containers, **pod)
        return await self.provider.create_instance(resolved, IMPLICIT_OFFER)

    async def sh(self, script: str, **fields: Any) -> InstanceRef:
        """Make an instance whose only container runs a script; return once it runs or ran."""
        ref = await self.create(shell("main", script, **fields))
        await self.reaches(ref, InstancePhase.RUNNING, InstancePhase.ENDED)
        return ref

    def seen(self, ref: InstanceRef) -> Observation:
        """What a list would show of it now."""
        return observe(self.service.find(ref), make_stamp())

    def container(self, ref: InstanceRef, name: str = "main") -> ContainerObservation:
        """One of its containers."""
        seen = self.seen(ref)
        return next(each for each in (*seen.init_containers, *seen.containers) if each.name == name)

    async def reaches(self, ref: InstanceRef, *phases: InstancePhase) -> Observation:
        """Return once it is in one of these phases."""
        await eventually(lambda: self.seen(ref).phase in phases, f"{ref.id} in {phases}")
        return self.seen(ref)

    async def eventually(self, ref: InstanceRef, condition: Callable[[Observation], Any]) -> None:
        """Return once a list shows it this way."""
        await eventually(lambda: condition(self.seen(ref)))

    async def run(
        self, ref: InstanceRef, script: str, container: str = "main", **flags: bool
    ) -> ScriptedClient:
        """What a script in a container printed; it must succeed."""
        client = ScriptedClient()
        request = ExecRequest(container, ("sh", "-c", script), **flags)
        assert await self.provider.exec(ref, request, client) == 0, client.stderr
        return client

    async def logs(self, ref: InstanceRef, container: str = "main", **how: Any) -> list[bytes]:
        """The texts of a container's lines."""
        return [line.text for line in await self.log_lines(ref, container, **how)]

    async def log_lines(
        self, ref: InstanceRef, container: str = "main", **how: Any
    ) -> list[LogLine]:
        """A container's lines."""
        lines = self.provider.read_logs(ref, container, LogOptions(**how))
        return [line async for line in lines]


def shell(name: str, script: str, **fields: Any) -> dict[str, Any]:
    """A container that runs a script."""
    # In a command Kubernetes reads a doubled dollar sign as one.
    return make_container(name, command=["sh", "-c", script.replace("$$", "$$$$")], **fields)


def is_alive(pid: int) -> bool:
    """Whether a process is there and not merely unburied."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")


@pytest.fixture
def config(tmp_path: Path) -> ProcessConfig:
    """Where the processes of a test live."""
    return ProcessConfig(folder=tmp_path)


@pytest.fixture
async def bench(config: ProcessConfig) -> AsyncIterator[Bench]:
    """A bench that leaves neither a process nor a file."""
    service = ProcessService(config)
    async with ProcessProvider(service, CLUSTER_ID, owns_service=True) as provider:
        yield Bench(provider, service)
    assert os.listdir(config.folder) == []
