"""The bench on which :class:`.contract.ProviderContract` tries a provider.

Whoever writes a provider implements :class:`ContractBackend` over a service of their own (a
simulator, a server that speaks the protocol) and hands a :class:`ContractRig` to the tests.
Fed by a subclass's fixture; feeds the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from vk_provider.faults import (
    DeniedError,
    OutcomeUnknownError,
    OutOfCapacityError,
    ProviderError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)
from vk_provider.pods.references import SECRET, ObjectKey
from vk_provider.pods.types import (
    IMPLICIT_OFFER,
    InstanceRef,
    Json,
    Observation,
    Offer,
    ResolvedPod,
    Stamp,
)
from vk_provider.provider import Provider, SupportsOffers
from vk_provider.testing.builders import NAMESPACE, make_container, make_resolved_pod

SECRET_VALUE = "xK9-correct-horse-battery-staple"
"""What must never be seen outside a create request."""


class CreateFailure(StrEnum):
    """How a create call is to fail."""

    OUT_OF_CAPACITY = "OutOfCapacity"
    DENIED = "Denied"
    THROTTLED = "Throttled"
    """With a wish to be asked again after :data:`RETRY_AFTER_SECONDS`."""
    UNAVAILABLE = "Unavailable"
    """Provably before anything was made."""
    REJECTED = "Rejected"
    OUTCOME_UNKNOWN = "OutcomeUnknown"
    """The instance is made, and the answer says nothing of it (a 5xx, a dropped connection)."""


class ListFailure(StrEnum):
    """How a list call is to fail."""

    UNAVAILABLE = "Unavailable"
    THROTTLED = "Throttled"
    DENIED = "Denied"
    GARBAGE = "Garbage"
    """An answer that is not the service's protocol."""
    PARTIAL = "Partial"
    """An answer that breaks off half way, as a second page that fails."""


RETRY_AFTER_SECONDS = 7.0


CREATE_FAULTS: dict[CreateFailure, type[ProviderError]] = {
    CreateFailure.OUT_OF_CAPACITY: OutOfCapacityError,
    CreateFailure.DENIED: DeniedError,
    CreateFailure.THROTTLED: ThrottledError,
    CreateFailure.UNAVAILABLE: UnavailableError,
    CreateFailure.REJECTED: RejectedError,
    CreateFailure.OUTCOME_UNKNOWN: OutcomeUnknownError,
}
LIST_FAULTS: dict[ListFailure, type[ProviderError]] = {
    ListFailure.UNAVAILABLE: UnavailableError,
    ListFailure.THROTTLED: ThrottledError,
    ListFailure.DENIED: DeniedError,
    ListFailure.GARBAGE: UnavailableError,
    ListFailure.PARTIAL: UnavailableError,
}


class ContractBackend(Protocol):
    """What a test does to the service behind the provider. A simulator implements it."""

    async def fail_next_create(self, failure: CreateFailure) -> None:
        """Let the next create call fail this way."""

    async def fail_next_list(self, failure: ListFailure) -> None:
        """Let the next logical list call fail this way."""

    async def hold_next_create(self) -> None:
        """Let the next create call be carried out, and its answer be kept back."""

    async def create_held(self) -> None:
        """Return once that call has been carried out. Its caller may be gone by then."""

    async def add_instance(self, stamp: Stamp | None) -> InstanceRef:
        """Put an instance there that this provider did not make: with another owner's stamp, or
        None for one that carries no stamp of ours at all."""

    async def run_instance(self, ref: InstanceRef) -> None:
        """Let an instance's containers start now, if they haven't."""

    async def end_instance(self, ref: InstanceRef, exit_code: int) -> None:
        """Let an instance's only container end by itself with this code."""

    async def garble_instance(self, ref: InstanceRef) -> None:
        """Show this instance from now on in a state that the provider has never heard of."""

    async def write_log(self, ref: InstanceRef, container: str, text: str) -> None:
        """Let a container write a line."""

    async def advance(self, seconds: float) -> None:
        """Let so much time pass in the service."""

    async def instance_ids(self) -> Sequence[str]:
        """The ids of all instances that exist, whoever owns them."""

    async def create_requests(self) -> Sequence[Json]:
        """The bodies of all create calls that arrived, as they were sent."""


@dataclass(frozen=True, slots=True)
class ContractRig:
    """A provider that was entered, the service behind it, and what it is known to refuse.

    ``unsupported``: a pod with fields it can't honour, and the paths of all of them. ``pod_fields``
    and ``container_fields`` are laid over every pod and container, for backends that take no plain
    ones. ``fills_in_addresses``: an instance can be told its own address (``status.podIP``).
    ``takes_input``: a container's own process can be given standard input and a terminal.
    ``ends_commands``: a command ends with its client, and an exec with its process whatever input
    was left. ``sizes_first``: a terminal has its client's size before its command starts.
    containerd promises none of the three.
    ``most_buffered_bytes`` may be under way between a process and a client that takes nothing: a
    few chunks of ours, and the buffers of the kernel and the backend, more where there are more
    connections between them.
    """

    provider: Provider
    backend: ContractBackend
    unsupported: tuple[ResolvedPod, frozenset[str]]
    pod_fields: Json = field(default_factory=dict)
    container_fields: Json = field(default_factory=dict)
    fills_in_addresses: bool = False
    takes_input: bool = True
    ends_commands: bool = True
    sizes_first: bool = True
    most_buffered_bytes: int = 4 << 20

    def pod(self, name: str = "app-1", *env: Json) -> ResolvedPod:
        """A pod that the provider can run, with a Secret's value in its environment."""
        key = ObjectKey(SECRET, NAMESPACE, "login")
        reference = {"name": "login", "key": "password"}
        variables = [
            {"name": "MODE", "value": "plain"},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": reference}},
            *env,
        ]
        container = make_container(env=variables, **self.container_fields)
        objects = {key: {"stringData": {"password": SECRET_VALUE}}}
        fields = dict(self.pod_fields)
        return make_resolved_pod(name, objects=objects, containers=[container], **fields)

    async def offer(self, pod: ResolvedPod) -> Offer:
        """The first offer that could carry ``pod``."""
        if not isinstance(self.provider, SupportsOffers):
            return IMPLICIT_OFFER
        return (await self.provider.list_offers(pod.gpu_count))[0]

    async def create(self, pod: ResolvedPod) -> InstanceRef:
        """Make an instance and wait until lists show it."""
        ref = await self.provider.create_instance(pod, await self.offer(pod))
        await self.settle()
        return ref

    async def running(self, pod: ResolvedPod) -> InstanceRef:
        """Make an instance whose container runs."""
        ref = await self.create(pod)
        await self.backend.run_instance(ref)
        return ref

    async def settle(self) -> None:
        """Let the time pass after which lists must tell the truth."""
        await self.backend.advance(self.provider.traits.list_lag_seconds)

    async def found(self, ref: InstanceRef) -> Observation | None:
        """What a list shows of an instance, None if it doesn't."""
        listed = await self.provider.list_instances()
        return next((each for each in listed if each.ref == ref), None)

    async def shown(self, ref: InstanceRef) -> Observation:
        """What a list shows of an instance that it must show."""
        found = await self.found(ref)
        assert found is not None, f"{ref.id} is not in the list"
        return found
