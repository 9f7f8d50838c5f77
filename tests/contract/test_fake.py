"""The fake provider keeps the contract that every provider keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

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
from vk_provider.pods.types import InstanceRef, Json, Stamp
from vk_provider.testing.builders import CLUSTER_ID, make_resolved_pod
from vk_provider.testing.contract import (
    ContractRig,
    CreateFailure,
    ListFailure,
    ProviderContract,
)
from vk_provider.testing.contract_rig import RETRY_AFTER_SECONDS
from vk_provider.testing.fake import FakeBackend, FakeConfig, FakeProvider, ManualClock

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


class FakeContractBackend:
    """The contract's orders, given to a fake service with a clock of its own."""

    def __init__(self, config: FakeConfig) -> None:
        self.clock = ManualClock()
        self.service = FakeBackend(config, self.clock)

    async def fail_next_create(self, failure: CreateFailure) -> None:
        created = failure is CreateFailure.OUTCOME_UNKNOWN
        self.service.fail_next_create(CREATE_FAULTS[failure], created=created)

    async def fail_next_list(self, failure: ListFailure) -> None:
        self.service.script.fail_next("list", LIST_FAULTS[failure])

    async def hold_next_create(self) -> None:
        self.service.script.hold_next_create()

    async def create_held(self) -> None:
        await self.service.script.create_held()

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
