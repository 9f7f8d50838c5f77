"""The fake provider keeps the contract that every provider keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from tests.support.scripted_failures import ScriptedFailures
from vk_provider.pods.types import InstanceRef, Json, Stamp
from vk_provider.testing.builders import CLUSTER_ID, make_resolved_pod
from vk_provider.testing.contract import ContractRig, ProviderContract
from vk_provider.testing.fake import FakeBackend, FakeConfig, FakeProvider, ManualClock


class FakeContractBackend(ScriptedFailures):
    """The contract's orders, given to a fake service with a clock of its own."""

    def __init__(self, config: FakeConfig) -> None:
        self.clock = ManualClock()
        self.service = FakeBackend(config, self.clock)
        super().__init__(self.service.script)

    async def add_instance(self, stamp: Stamp | None) -> InstanceRef:
        return self.service.add(stamp).ref

    async def run_instance(self, ref: InstanceRef) -> None:
        self.service.start(ref)

    async def end_instance(self, ref: InstanceRef, exit_code: int) -> None:
        self.service.end(ref, exit_code)

    async def garble_instance(self, ref: InstanceRef) -> None:
        self.service.garble(ref)

    async def write_log(self, ref: InstanceRef, container: str, text: str) -> None:
        self.service.write_log(ref, container, text.encode())

    async def advance(self, seconds: float) -> None:
        self.clock.now += seconds
        self.service.wake()

    async def instance_ids(self) -> Sequence[str]:
        return [ref for ref, each in self.service.instances.items() if each.deleted_at is None]

    async def create_requests(self) -> Sequence[Json]:
        return self.service.requests


class TestFake(ProviderContract):
    """The whole suite, with a service that tells the truth at once and one that lags."""

    @pytest.fixture(params=[0.0, 5.0], ids=["prompt lists", "lists that lag"])
    async def rig(self, request: pytest.FixtureRequest) -> AsyncIterator[ContractRig]:
        """A fake service that starts what it is told after a minute."""
        config = FakeConfig(start_after_seconds=60, list_lag_seconds=request.param)
        backend = FakeContractBackend(config)
        unsupported = {"fake.vk-provider.dev/unsupported": "spec.hostNetwork, spec.dnsConfig"}
        pod = make_resolved_pod("odd", metadata={"annotations": unsupported})
        async with FakeProvider(backend.service, CLUSTER_ID) as provider:
            paths = frozenset({"spec.hostNetwork", "spec.dnsConfig"})
            yield ContractRig(provider, backend, unsupported=(pod, paths))
