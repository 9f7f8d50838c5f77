"""The RunPod provider keeps the contract, against the simulator over real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from vk_provider_runpod import factory
from vk_provider_runpod.simulator import Options, Simulator, running
from vk_provider_runpod.simulator.model import SimulatedPod
from vk_provider_runpod.stamp import instance_name, stamp_env

from vk_provider.pods.types import InstanceRef, Json, Stamp
from vk_provider.provider import ProviderContext
from vk_provider.testing.builders import CLUSTER_ID, NODE_NAME, make_resolved_pod
from vk_provider.testing.contract import (
    ContractRig,
    CreateFailure,
    ListFailure,
    ProviderContract,
)
from vk_provider.testing.contract_rig import RETRY_AFTER_SECONDS
from vk_provider.testing.contract_streams import StreamContracts

CREATE_FAULTS = {
    CreateFailure.OUT_OF_CAPACITY: "no-capacity",
    CreateFailure.DENIED: "balance",
    CreateFailure.THROTTLED: "throttled",
    CreateFailure.REJECTED: "invalid",
    CreateFailure.OUTCOME_UNKNOWN: "error-after",
}
LIST_FAULTS = {
    ListFailure.UNAVAILABLE: "error",
    ListFailure.THROTTLED: "throttled",
    ListFailure.DENIED: "unauthorized",
    ListFailure.GARBAGE: "garbage",
    ListFailure.PARTIAL: "broken-page",
}


class RunPodContractBackend:
    """The contract's orders, given to a simulator whose clock stands still."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        self.state = simulator.state
        self.servers: list[asyncio.Server] = []

    def pod(self, ref: InstanceRef) -> SimulatedPod:
        """The simulated pod behind a reference."""
        return self.state.model.pods[ref.id]

    async def fail_next_create(self, failure: CreateFailure) -> None:
        if failure is CreateFailure.UNAVAILABLE:
            await self.simulator.refuse()
            return
        retry_after = int(RETRY_AFTER_SECONDS)
        self.state.faults.add(CREATE_FAULTS[failure], count=1, retry_after=retry_after)

    async def fail_next_list(self, failure: ListFailure) -> None:
        if failure is ListFailure.PARTIAL:
            self.state.add_foreign("on-another-page")
            self.state.options = replace(self.state.options, page_size=1)
            self.state.clock.advance(60)
        self.state.faults.add(LIST_FAULTS[failure], count=1, operation="listPods")

    async def hold_next_create(self) -> None:
        self.state.faults.add("hold", count=1, hold_ms=60_000)

    async def create_held(self) -> None:
        async with asyncio.timeout(10):
            while not self.state.model.pods:  # noqa: ASYNC110  # the service has no event for it
                await asyncio.sleep(0.01)

    async def add_instance(self, stamp: Stamp | None) -> InstanceRef:
        if stamp is None:
            return InstanceRef(self.state.add_foreign("somebody-elses"))
        return InstanceRef(
            self.state.add_foreign(instance_name(stamp), env=stamp_env(stamp, "main"))
        )

    async def run_instance(self, ref: InstanceRef) -> None:
        pod = self.pod(ref)
        pod.behaviour = replace(pod.behaviour, pull_seconds=0.0)
        pod.started_at = self.state.clock.now() - 1

    async def end_instance(self, ref: InstanceRef, exit_code: int) -> None:
        self.state.model.end(self.pod(ref), "EXITED", self.state.clock.now())

    async def garble_instance(self, ref: InstanceRef) -> None:
        self.pod(ref).status_override = "HIBERNATING"

    async def write_log(self, ref: InstanceRef, container: str, text: str) -> None:
        self.pod(ref).said.append((self.state.clock.now(), "container", text))

    async def advance(self, seconds: float) -> None:
        self.state.clock.advance(seconds)

    async def instance_ids(self) -> Sequence[str]:
        return [key for key, pod in self.state.model.pods.items() if pod.deleted_at is None]

    async def create_requests(self) -> Sequence[Json]:
        return list(self.state.bodies)

    async def echo_port(self, ref: InstanceRef) -> int:
        # A pod's loopback is this machine's.
        server = await asyncio.start_server(_echo, "127.0.0.1", 0)
        self.servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def closed_port(self, ref: InstanceRef) -> int:
        with socket.create_server(("127.0.0.1", 0)) as unused:
            return int(unused.getsockname()[1])

    async def close(self) -> None:
        """Stop what was started for the tests of ports."""
        for server in self.servers:
            server.close()
            await server.wait_closed()


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()


@pytest.fixture(scope="module")
def ssh_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The node's private key."""
    path = tmp_path_factory.mktemp("ssh") / "id_ed25519"
    path.write_bytes(asyncssh.generate_private_key("ssh-ed25519").export_private_key())
    return path


class TestRunPod(ProviderContract, StreamContracts):
    """The whole suite, with lists that tell the truth at once and lists that lag."""

    @pytest.fixture(params=[0.0, 5.0], ids=["prompt lists", "lists that lag"])
    async def rig(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, ssh_key: Path
    ) -> AsyncIterator[ContractRig]:
        """A simulator that pulls images for an hour, in pages of fifty."""
        monkeypatch.setenv("RUNPOD_KEY_OF_THE_CONTRACT", "rpa_contract_key")
        options = Options(
            speed=0,
            pull_seconds=3600,
            log_every_seconds=0,
            page_size=50,
            list_lag_seconds=request.param,
            runs_exec=True,
        )
        async with running(options) as simulator:
            config: dict[str, Any] = {
                "apiKey": {"env": "RUNPOD_KEY_OF_THE_CONTRACT"},
                "baseUrl": simulator.url,
                "listLagSeconds": request.param,
                "ssh": {"privateKey": {"file": str(ssh_key)}},
            }
            context = ProviderContext(CLUSTER_ID, NODE_NAME, "runpod", "config", "contract/1")
            pod = make_resolved_pod(
                "odd", hostNetwork=True, volumes=[{"name": "host", "hostPath": {"path": "/dev"}}]
            )
            paths = frozenset({"spec.hostNetwork", "spec.volumes[0].hostPath"})
            async with factory(config, context) as provider:
                backend = RunPodContractBackend(simulator)
                yield ContractRig(provider, backend, unsupported=(pod, paths), takes_input=False)
                await backend.close()
