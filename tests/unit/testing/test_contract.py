"""The contract suite finds what is wrong with a provider: each mutant here breaks one rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.contract.test_fake import FakeContractBackend
from vk_provider.faults import OutcomeUnknownError, ProviderError, UnsupportedFieldsError
from vk_provider.pods.types import (
    Explanation,
    InstancePhase,
    InstanceRef,
    Observation,
    Offer,
    ResolvedPod,
)
from vk_provider.testing.builders import CLUSTER_ID, make_resolved_pod, make_stamp
from vk_provider.testing.contract import (
    ContractRig,
    CreateFailure,
    ListFailure,
    ProviderContract,
)
from vk_provider.testing.fake import FakeConfig, FakeProvider
from vk_provider.testing.fake_translate import request_for


class Twice(FakeProvider):
    """Retries by itself."""

    async def create_instance(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        try:
            return await super().create_instance(pod, offer)
        except OutcomeUnknownError:
            return await super().create_instance(pod, offer)


class Unstamped(FakeProvider):
    """Stamps the wrong node."""

    async def create_instance(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        wrong = replace(pod, stamp=make_stamp(pod.stamp.pod_name, node_name="other"))
        return await super().create_instance(wrong, offer)


class Quiet(FakeProvider):
    """Takes a failed list for an empty one."""

    async def list_instances(self) -> Sequence[Observation]:
        try:
            return await super().list_instances()
        except ProviderError:
            return []


class Nosy(FakeProvider):
    """Lists other clusters' instances."""

    async def list_instances(self) -> Sequence[Observation]:
        return [*await super().list_instances(), *await self.backend.list("cluster-2")]


class Hiding(FakeProvider):
    """Drops what it can't read."""

    async def list_instances(self) -> Sequence[Observation]:
        listed = await super().list_instances()
        return [each for each in listed if each.phase is not InstancePhase.UNKNOWN]


class Ticking(FakeProvider):
    """Lets the time leak into its observations."""

    async def list_instances(self) -> Sequence[Observation]:
        message = f"up for {self.backend.clock()} s"
        return [replace(each, message=message) for each in await super().list_instances()]


class Blurting(FakeProvider):
    """Shows secrets."""

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        return Explanation(request_for(pod, offer))


class Embellishing(FakeProvider):
    """Explains another request than it sends."""

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        explained = super().explain(pod, offer)
        return Explanation({**explained.request, "containers": [{"env": {}}, {}], "more": 1})


class Terse(FakeProvider):
    """Names only the first of the fields it refuses."""

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        try:
            return super().explain(pod, offer)
        except UnsupportedFieldsError as error:
            raise UnsupportedFieldsError(error.problems[:1]) from error


class Immortal(FakeProvider):
    """Never deletes."""

    async def delete_instance(self, ref: InstanceRef, grace_seconds: int) -> None:
        return None


class Inventive(FakeProvider):
    """Makes exit codes up."""

    async def list_instances(self) -> Sequence[Observation]:
        for instance in self.backend.instances.values():
            if instance.end is not None:
                instance.end = replace(instance.end, exit_code=99)
        return await super().list_instances()


class Careless(FakeProvider):
    """Drops variables that it can't fill in."""

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        return super().explain(replace(pod, unresolvable=()), offer)


@pytest.mark.parametrize(
    ("mutant", "rule", "cases"),
    [
        (Twice, "test_a_failed_create_is_not_tried_again", {}),
        (Unstamped, "test_a_created_instance_is_listed_under_its_stamp", {}),
        (Quiet, "test_a_failed_list_raises_and_never_shortens", {"failure": ListFailure.PARTIAL}),
        (Nosy, "test_other_clusters_and_strangers_are_not_listed", {}),
        (Hiding, "test_an_unreadable_instance_is_unknown", {}),
        (Ticking, "test_an_unchanged_instance_reads_the_same", {}),
        (Blurting, "test_explain_masks_secrets", {}),
        (Embellishing, "test_explain_is_what_create_sends", {}),
        (Terse, "test_unsupported_fields_are_named_all_at_once", {}),
        (Immortal, "test_a_deleted_instance_leaves_the_list", {}),
        (Inventive, "test_an_end_is_told_truthfully_or_not_at_all", {"exit_code": 3}),
        (Careless, "test_what_could_not_be_filled_in_is_not_dropped", {}),
        (
            Twice,
            "test_a_failed_create_raises_the_fault_of_its_cause",
            {"failure": CreateFailure.OUTCOME_UNKNOWN},
        ),
    ],
)
async def test_the_contract_finds_the_mutant(
    mutant: type[FakeProvider], rule: str, cases: dict[str, Any]
) -> None:
    """With the test that states the rule it breaks, and which the fake itself passes."""
    annotations = {"fake.vk-provider.dev/unsupported": "spec.a, spec.b"}
    odd = make_resolved_pod("odd", metadata={"annotations": annotations})

    async def run(provider_class: type[FakeProvider]) -> None:
        backend = FakeContractBackend(FakeConfig(start_after_seconds=60))
        provider = provider_class(backend.service, CLUSTER_ID)
        rig = ContractRig(provider, backend, unsupported=(odd, frozenset({"spec.a", "spec.b"})))
        await getattr(ProviderContract(), rule)(rig, **cases)

    await run(FakeProvider)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await run(mutant)
