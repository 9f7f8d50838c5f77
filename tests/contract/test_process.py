"""The process provider keeps the contract that every provider keeps, with all capabilities."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.obedient import OBEDIENT, OBEDIENT_FIELDS, listening
from tests.support.scripted_failures import ScriptedFailures
from vk_provider.pods.types import InstancePhase, InstanceRef, Json, Stamp
from vk_provider.testing.builders import CLUSTER_ID, make_resolved_pod
from vk_provider.testing.contract import ContractRig, ProviderContract
from vk_provider.testing.contract_streams import StreamContracts
from vk_provider.testing.process import ProcessConfig, ProcessProvider, ProcessService
from vk_provider.testing.process_instance import Order
from vk_provider.testing.process_observe import phase_of
from vk_provider.testing.process_ports import free_port


class ProcessContractBackend(ScriptedFailures):
    """The contract's orders, given to containers that obey."""

    def __init__(self, service: ProcessService) -> None:
        super().__init__(service.script)
        self.service = service

    async def add_instance(self, stamp: Stamp | None) -> InstanceRef:
        return self.service.add(Order(stamp)).ref

    async def run_instance(self, ref: InstanceRef) -> None:
        instance = self.service.find(ref)
        await eventually(lambda: phase_of(instance) is InstancePhase.RUNNING, "running")
        if instance.plan.containers[0].argv[2:3] == (OBEDIENT,):
            await eventually(lambda: self._pipe(ref, "main").exists(), "the pipe for orders")

    async def end_instance(self, ref: InstanceRef, exit_code: int) -> None:
        instance = self.service.find(ref)
        self._order(ref, "main", f"exit {exit_code}")
        await eventually(lambda: phase_of(instance) is InstancePhase.ENDED, "its end")

    async def garble_instance(self, ref: InstanceRef) -> None:
        self.service.find(ref).garbled = True

    async def write_log(self, ref: InstanceRef, container: str, text: str) -> None:
        self._order(ref, container, f"say {text}")
        log = self._pipe(ref, container).parents[2] / "logs" / f"{container}.log"
        await eventually(lambda: text.encode() in log.read_bytes(), "the line in the log")

    async def advance(self, seconds: float) -> None:
        # Its time is real and short: what is on its way out is waited for, nothing else changes.
        await self.service.settled(seconds + 30)

    async def instance_ids(self) -> Sequence[str]:
        return list(self.service.instances)

    async def create_requests(self) -> Sequence[Json]:
        return self.service.requests

    async def echo_port(self, ref: InstanceRef) -> int:
        port = free_port()
        self._order(ref, "main", f"serve {port}")
        return await listening(port)

    async def closed_port(self, ref: InstanceRef) -> int:
        return free_port()

    def _pipe(self, ref: InstanceRef, container: str) -> Path:
        return self.service.find(ref).find(container).root / "orders"

    def _order(self, ref: InstanceRef, container: str, order: str) -> None:
        with self._pipe(ref, container).open("w") as orders:
            orders.write(f"{order}\n")


def obedient_rig(provider: ProcessProvider, backend: ProcessContractBackend) -> ContractRig:
    """A rig whose containers take orders."""
    volume = {"name": "host", "hostPath": {"path": "/dev"}}
    pod = make_resolved_pod("odd", hostAliases=[{"ip": "10.0.0.1"}], volumes=[volume])
    return ContractRig(
        provider,
        backend,
        unsupported=(pod, frozenset({"spec.hostAliases", "spec.volumes[0].hostPath"})),
        container_fields=OBEDIENT_FIELDS,
    )


class TestProcess(ProviderContract, StreamContracts):
    """The whole suite, with real processes."""

    @pytest.fixture
    async def rig(self, tmp_path: Path) -> AsyncIterator[ContractRig]:
        """A service whose containers obey."""
        service = ProcessService(ProcessConfig(folder=tmp_path))
        async with ProcessProvider(service, CLUSTER_ID, owns_service=True) as provider:
            yield obedient_rig(provider, ProcessContractBackend(service))
        assert os.listdir(tmp_path) == []
