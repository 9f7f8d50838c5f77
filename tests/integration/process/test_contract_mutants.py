"""The contracts of streams find what is wrong with a provider: each mutant breaks one rule."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.contract import test_process
from tests.contract.test_process import ProcessContractBackend, obedient_rig
from vk_provider.pods.types import InstanceRef
from vk_provider.streams import AttachRequest, ContainerIO, ExecRequest, InstanceStats
from vk_provider.testing.builders import CLUSTER_ID
from vk_provider.testing.contract import ContractRig, ProviderContract
from vk_provider.testing.process import ProcessConfig, ProcessProvider, ProcessService


class Shielding(ProcessProvider):
    """Lets a command run on when its client has gone."""

    async def exec(self, ref: InstanceRef, request: ExecRequest, io: ContainerIO) -> int:
        running = asyncio.create_task(super().exec(ref, request, io))
        LEFT.append(running)
        return await asyncio.shield(running)


class Hoarding(ProcessProvider):
    """Reads ahead without bounds."""

    async def exec(self, ref: InstanceRef, request: ExecRequest, io: ContainerIO) -> int:
        hoard = Hoard(io)
        code = await super().exec(ref, request, hoard)
        for chunk in hoard.kept:
            await io.write_stdout(chunk)
        return code


class Hoard:
    """A client that takes everything."""

    def __init__(self, io: ContainerIO) -> None:
        self.stdin, self.resizes, self.write_stderr = io.stdin, io.resizes, io.write_stderr
        self.kept: list[bytes] = []

    async def write_stdout(self, chunk: bytes) -> None:
        """Keep it."""
        self.kept.append(chunk)


class Deaf(ProcessProvider):
    """Never tells a command that its input has ended."""

    async def exec(self, ref: InstanceRef, request: ExecRequest, io: ContainerIO) -> int:
        return await super().exec(ref, replace(request, stdin=False), io)


class Merging(ProcessProvider):
    """Runs every command in a terminal."""

    async def exec(self, ref: InstanceRef, request: ExecRequest, io: ContainerIO) -> int:
        return await super().exec(ref, replace(request, tty=True), io)


class Flattering(ProcessProvider):
    """Knows one kind of failure."""

    async def exec(self, ref: InstanceRef, request: ExecRequest, io: ContainerIO) -> int:
        return min(await super().exec(ref, request, io), 1)


class Possessive(ProcessProvider):
    """Ends a container with its client."""

    async def attach(self, ref: InstanceRef, request: AttachRequest, io: ContainerIO) -> int | None:
        try:
            return await super().attach(ref, request, io)
        finally:
            await self.service.delete(ref, 0)


class Nosy(ProcessProvider):
    """Measures other clusters' instances."""

    async def read_stats(self) -> tuple[InstanceStats, ...]:
        other = ProcessProvider(self.service, "cluster-2")
        return await super().read_stats() + await other.read_stats()


LEFT: list[asyncio.Task[int]] = []


@pytest.fixture
async def left() -> AsyncIterator[None]:
    """Ends what a mutant left running."""
    yield
    for task in LEFT:
        task.cancel()
    await asyncio.gather(*LEFT, return_exceptions=True)
    LEFT.clear()


@pytest.mark.parametrize(
    ("mutant", "rule", "case"),
    [
        (Shielding, "test_a_client_that_leaves_takes_its_command_along", {}),
        (Hoarding, "test_a_slow_client_slows_the_command", {}),
        (Deaf, "test_input_arrives_whole_and_its_end_too", {}),
        (Merging, "test_output_and_errors_stay_apart_and_in_order", {}),
        (Flattering, "test_a_command_ends_with_its_own_exit_code", {"script": "exit 3", "code": 3}),
        (Possessive, "test_a_container_outlives_those_who_were_attached", {}),
        (Nosy, "test_usage_is_told_by_pod_and_container", {}),
    ],
)
@pytest.mark.usefixtures("left")
async def test_a_mutant_is_found(
    tmp_path: Path, mutant: type[ProcessProvider], rule: str, case: dict[str, Any]
) -> None:
    """By the rule that it breaks; the provider itself keeps it."""
    service = ProcessService(ProcessConfig(folder=tmp_path))
    async with mutant(service, CLUSTER_ID, owns_service=True) as provider:
        rig: ContractRig = obedient_rig(provider, ProcessContractBackend(service))

        with pytest.raises((AssertionError, TimeoutError)):
            await getattr(test_process.TestProcess(), rule)(rig, **case)


async def test_an_untried_capability_is_found(tmp_path: Path) -> None:
    """Offering exec means to take its contract."""
    service = ProcessService(ProcessConfig(folder=tmp_path))
    async with ProcessProvider(service, CLUSTER_ID, owns_service=True) as provider:
        rig = obedient_rig(provider, ProcessContractBackend(service))

        with pytest.raises(AssertionError, match="must derive from ExecContract"):
            await ProviderContract().test_what_is_offered_is_tried(rig)
