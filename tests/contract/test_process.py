"""The process provider keeps the contract that every provider keeps, with all capabilities."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from vk_provider.faults import (
    DeniedError,
    GarbledAnswerError,
    OutcomeUnknownError,
    OutOfCapacityError,
    ProviderError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)
from vk_provider.pods.types import InstancePhase, InstanceRef, Json, Stamp
from vk_provider.testing.builders import CLUSTER_ID, make_resolved_pod
from vk_provider.testing.contract import (
    ContractRig,
    CreateFailure,
    ListFailure,
    ProviderContract,
)
from vk_provider.testing.contract_rig import RETRY_AFTER_SECONDS
from vk_provider.testing.contract_streams import StreamContracts
from vk_provider.testing.process import ProcessConfig, ProcessProvider, ProcessService
from vk_provider.testing.process_instance import Order
from vk_provider.testing.process_observe import phase_of
from vk_provider.testing.process_ports import free_port

CREATE_FAULTS: dict[CreateFailure, ProviderError] = {
    CreateFailure.OUT_OF_CAPACITY: OutOfCapacityError("no machine"),
    CreateFailure.DENIED: DeniedError("the key was withdrawn"),
    CreateFailure.THROTTLED: ThrottledError("slower, please", RETRY_AFTER_SECONDS),
    CreateFailure.UNAVAILABLE: UnavailableError("refused"),
    CreateFailure.REJECTED: RejectedError("no such image"),
    CreateFailure.OUTCOME_UNKNOWN: OutcomeUnknownError("the answer was lost"),
}
LIST_FAULTS: dict[ListFailure, ProviderError] = {
    ListFailure.UNAVAILABLE: UnavailableError("refused"),
    ListFailure.THROTTLED: ThrottledError("slower, please", RETRY_AFTER_SECONDS),
    ListFailure.DENIED: DeniedError("the key was withdrawn"),
    ListFailure.GARBAGE: GarbledAnswerError("not our protocol"),
    ListFailure.PARTIAL: UnavailableError("the second page did not come"),
}
OBEDIENT = """
mkfifo orders
while read -r order rest; do
  case $order in
    say) echo "$rest" ;;
    serve) "$1" -c "$2" "$rest" & ;;
    exit) exit "$rest" ;;
  esac
done <> orders
"""
"""A container that does what it is told through a pipe in its working directory."""
ECHO = """
import socket, sys, threading

def echo(connection):
    while chunk := connection.recv(65536):
        connection.sendall(chunk)
    connection.close()

with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        threading.Thread(target=echo, args=server.accept()[:1], daemon=True).start()
"""


class ProcessContractBackend:
    """The contract's orders, given to containers that obey."""

    def __init__(self, service: ProcessService) -> None:
        self.service = service

    async def fail_next_create(self, failure: CreateFailure) -> None:
        created = failure is CreateFailure.OUTCOME_UNKNOWN
        self.service.script.fail_next("create", CREATE_FAULTS[failure], created=created)

    async def fail_next_list(self, failure: ListFailure) -> None:
        self.service.script.fail_next("list", LIST_FAULTS[failure])

    async def hold_next_create(self) -> None:
        self.service.script.hold_next_create()

    async def create_held(self) -> None:
        await self.service.script.create_held()

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
        async with asyncio.timeout(20):
            while True:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    await writer.wait_closed()
                    return port
                await asyncio.sleep(0.02)

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
        container_fields={
            "command": ["sh", "-c", OBEDIENT, "obedient"],
            "args": [sys.executable, ECHO],
        },
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
