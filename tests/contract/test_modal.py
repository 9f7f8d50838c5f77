"""The Modal provider keeps the contract: the real SDK, against the simulator over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from vk_provider_modal import factory
from vk_provider_modal.simulator import Options, Simulator, running
from vk_provider_modal.simulator.model import STATUSES, End, SimulatedSandbox, Wish
from vk_provider_modal.stamp import app_name, stamp_tags

from vk_provider.pods.types import IMPLICIT_OFFER, InstanceRef, Json, Stamp
from vk_provider.provider import ProviderContext
from vk_provider.testing.builders import CLUSTER_ID, NODE_NAME, make_resolved_pod
from vk_provider.testing.contract import (
    ContractRig,
    CreateFailure,
    ListFailure,
    ProviderContract,
)
from vk_provider.testing.contract_rig import RETRY_AFTER_SECONDS
from vk_provider.testing.contract_streams import (
    AttachContract,
    ExecContract,
    PortForwardContract,
)
from vk_provider.testing.process_ports import free_port

CREATE_FAULTS = {
    CreateFailure.OUT_OF_CAPACITY: "no-capacity",
    CreateFailure.DENIED: "permission-denied",
    CreateFailure.THROTTLED: "throttled",
    CreateFailure.REJECTED: "invalid-argument",
    CreateFailure.OUTCOME_UNKNOWN: "unavailable-after",
}
LIST_FAULTS = {
    ListFailure.UNAVAILABLE: "unavailable",
    ListFailure.THROTTLED: "throttled",
    ListFailure.DENIED: "unauthenticated",
    ListFailure.GARBAGE: "garbage",
    ListFailure.PARTIAL: "broken-page",
}


def request_of(wish: Wish) -> Json:
    """What arrived, in the words in which ``explain`` shows it."""
    definition, resources = wish.definition, wish.definition.resources
    gpu, count = wish.gpu
    ports = definition.open_ports.ports
    login = {
        key: wish.image["login"][name]
        for key, name in (("username", "REGISTRY_USERNAME"), ("password", "REGISTRY_PASSWORD"))
        if name in wish.image["login"]
    }
    found: dict[str, Any] = {
        "name": wish.name,
        "tags": dict(wish.tags),
        "image": {
            "reference": wish.image["reference"],
            "dockerfile": wish.image["dockerfile"],
            "login": login,
        },
        "args": list(definition.entrypoint_args),
        "workdir": definition.workdir,
        "gpu": gpu if count == 1 else f"{gpu}:{count}" if count else "",
        "memory": resources.memory_mb,
        "encryptedPorts": [each.port for each in ports if not each.unencrypted],
        "unencryptedPorts": [each.port for each in ports if each.unencrypted],
    }
    found["image"] = {key: value for key, value in found["image"].items() if value}
    kept = {key: value for key, value in found.items() if value}
    return {**kept, "env": dict(wish.env), "timeout": definition.timeout_secs}


class ModalContractBackend:
    """The contract's orders, given to a simulator whose clock stands still."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        self.state = simulator.state
        self.ports = (free_port(), free_port())
        """What the pods listen on; nobody ever does on the second."""
        self._servers: list[asyncio.Server] = []

    def sandbox(self, ref: InstanceRef) -> SimulatedSandbox:
        """The simulated sandbox behind a reference."""
        return self.state.model.sandboxes[ref.id]

    async def fail_next_create(self, failure: CreateFailure) -> None:
        if failure is CreateFailure.UNAVAILABLE:
            await self.simulator.refuse()
            return
        self.state.faults.add(CREATE_FAULTS[failure], count=1, retry_after=RETRY_AFTER_SECONDS)

    async def fail_next_list(self, failure: ListFailure) -> None:
        if failure is ListFailure.PARTIAL:
            self.state.add_foreign("on-another-page", app=app_name(CLUSTER_ID))
            self.state.options = replace(self.state.options, page_size=1)
            self.state.clock.advance(60)
        self.state.faults.add(LIST_FAULTS[failure], count=1, operation="SandboxList")

    async def hold_next_create(self) -> None:
        self.state.faults.add("hold", count=1, hold_ms=60_000)

    async def create_held(self) -> None:
        async with asyncio.timeout(10):
            while not self.state.model.sandboxes:  # noqa: ASYNC110  # the service has no event
                await asyncio.sleep(0.01)

    async def add_instance(self, stamp: Stamp | None) -> InstanceRef:
        if stamp is None:
            return InstanceRef(self.state.add_foreign("strange", app=app_name(CLUSTER_ID)).id)
        tags = stamp_tags(stamp, "main", IMPLICIT_OFFER, ())
        made = self.state.add_foreign(f"vk-{stamp.pod_uid}", app=app_name(CLUSTER_ID), **tags)
        return InstanceRef(made.id)

    async def run_instance(self, ref: InstanceRef) -> None:
        sandbox = self.sandbox(ref)
        sandbox.behaviour = replace(sandbox.behaviour, start_seconds=0.0)

    async def end_instance(self, ref: InstanceRef, exit_code: int) -> None:
        status = STATUSES.index("FAILURE" if exit_code else "SUCCESS")
        end = End(status, self.state.clock.now(), exit_code)
        self.state.model.finish(self.sandbox(ref), end)

    async def garble_instance(self, ref: InstanceRef) -> None:
        self.sandbox(ref).shown_status = 99

    async def write_log(self, ref: InstanceRef, container: str, text: str) -> None:
        self.sandbox(ref).said.append((self.state.clock.now(), "stdout", f"{text}\n"))

    async def advance(self, seconds: float) -> None:
        self.state.clock.advance(seconds)

    async def instance_ids(self) -> Sequence[str]:
        return list(self.state.model.living)

    async def create_requests(self) -> Sequence[Json]:
        return [request_of(wish) for wish in self.state.wishes]

    async def echo_port(self, ref: InstanceRef) -> int:
        port, _ = self.ports
        self._servers.append(await asyncio.start_server(_echo, "127.0.0.1", port))
        return port

    async def closed_port(self, ref: InstanceRef) -> int:
        return self.ports[1]

    async def close(self) -> None:
        """Listen no more."""
        for server in self._servers:
            server.close()
            await server.wait_closed()


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65_536):
        writer.write(chunk)
        await writer.drain()
    writer.close()


class TestModal(ProviderContract, ExecContract, AttachContract, PortForwardContract):
    """The whole suite, with lists that tell the truth at once and lists that lag."""

    @pytest.fixture(params=[0.0, 5.0], ids=["prompt lists", "lists that lag"])
    async def rig(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[ContractRig]:
        """A simulator whose containers take an hour to start, in pages of fifty."""
        monkeypatch.setenv("MODAL_ID_OF_THE_CONTRACT", "ak-contract")
        monkeypatch.setenv("MODAL_SECRET_OF_THE_CONTRACT", "as-contract-secret")
        options = Options(
            speed=0,
            behind_seconds=3600,
            start_seconds=3600,
            log_every_seconds=0,
            page_size=50,
            runs_exec=True,
            list_lag_seconds=request.param,
        )
        async with running(options) as simulator:
            config: dict[str, Any] = {
                "tokenId": {"env": "MODAL_ID_OF_THE_CONTRACT"},
                "tokenSecret": {"env": "MODAL_SECRET_OF_THE_CONTRACT"},
                "baseUrl": simulator.url,
                "listLagSeconds": request.param,
                "requestTimeoutSeconds": 20,
                "capacityWaitSeconds": 5,
            }
            context = ProviderContext(CLUSTER_ID, NODE_NAME, "modal", "config", "contract/1")
            pod = make_resolved_pod(
                "odd", hostNetwork=True, volumes=[{"name": "host", "hostPath": {"path": "/dev"}}]
            )
            paths = frozenset({"spec.hostNetwork", "spec.volumes[0].hostPath"})
            async with factory(config, context) as provider:
                backend = ModalContractBackend(simulator)
                ports = {"modal.vk-provider.dev/tcp-ports": ", ".join(map(str, backend.ports))}
                yield ContractRig(
                    provider,
                    backend,
                    unsupported=(pod, paths),
                    pod_fields={"metadata": {"annotations": ports}},
                    takes_input=False,
                )
                await backend.close()
