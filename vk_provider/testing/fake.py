"""``FakeProvider``: the seam over an in-memory service, for tests, rehearsals and benchmarks.

Also the entry point ``fake``. It honours the whole seam, pushes changes, keeps logs, and leaves
no timer behind.
Fed by the core; speaks to a :class:`.fake_backend.FakeBackend`, which tests script.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Self

from vk_provider.faults import (
    NotSupportedError,
    OutOfCapacityError,
    RejectedError,
)
from vk_provider.pods.types import (
    Explanation,
    InstanceRef,
    LogLine,
    LogOptions,
    NodeCapacity,
    Observation,
    Offer,
    PodUID,
    ResolvedPod,
    Stamp,
    Stock,
)
from vk_provider.provider import ProviderContext, ProviderTraits
from vk_provider.testing.fake_backend import FakeBackend
from vk_provider.testing.fake_bill import TellsItsBill
from vk_provider.testing.fake_config import FakeConfig, FakeOffer, parse_config
from vk_provider.testing.fake_logs import read_logs
from vk_provider.testing.fake_service import ManualClock, Order
from vk_provider.testing.fake_translate import explained, plan_for, request_for, wish

__all__ = ["FakeBackend", "FakeConfig", "FakeOffer", "FakeProvider", "ManualClock", "factory"]

_SHARED: dict[str, FakeBackend] = {}
"""The services that were given a name, for as long as the process lives, as a cloud would."""


def factory(config: Mapping[str, Any], context: ProviderContext) -> FakeProvider:
    """The entry point ``fake``. Raises ``ConfigError`` with all problems of the block."""
    parsed = parse_config(config, context.config_path)
    backend = FakeBackend(parsed)
    if parsed.service is not None:
        backend = _SHARED.setdefault(parsed.service, backend)
    for pod in parsed.leftovers:
        backend.add(_leftover(pod, context))
    return FakeProvider(backend, context.cluster_id)


def _leftover(pod: str, context: ProviderContext) -> Stamp:
    namespace, _, name = pod.rpartition("/")
    uid = PodUID(str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{pod}.vk-provider.dev")))
    return Stamp(context.cluster_id, context.node_name, namespace, name, uid)


class FakeProvider(TellsItsBill):
    """One node's connection to a fake service. Several may share the service."""

    def __init__(self, backend: FakeBackend, cluster_id: str) -> None:
        super().__init__(backend)
        self.backend = backend
        self._cluster_id = cluster_id
        self.traits = ProviderTraits(
            list_lag_seconds=backend.config.list_lag_seconds,
            ended_is_free=backend.config.ended_is_free,
            ids_are_global=backend.config.ids_are_global,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        """The create call's body, masked."""
        return Explanation(explained(pod, offer))

    async def create_instance(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        """Make one instance; it starts and ends by itself, as configured."""
        request = request_for(pod, offer)
        plan = plan_for(pod, self.backend.config)
        if wish(pod, "out-of-capacity") == "true":
            raise OutOfCapacityError(f"no machine for {offer.id}: the annotation asks for it")
        if (why := wish(pod, "rejected")) is not None:
            raise RejectedError(f"the service refuses the request: {why}")
        return await self.backend.create(Order(pod.stamp, plan, offer, request))

    async def delete_instance(self, ref: InstanceRef, grace_seconds: int) -> None:
        """End and forget an instance at once; the fake needs no grace."""
        await self.backend.delete(ref)

    async def list_instances(self) -> Sequence[Observation]:
        """All instances of our cluster."""
        return await self.backend.list(self._cluster_id)

    async def capacity(self) -> NodeCapacity:
        """As configured."""
        self.backend.calls["capacity"] += 1
        self.backend.script.check("capacity")
        return NodeCapacity(self.backend.config.capacity)

    async def list_offers(self, gpu_count: int) -> Sequence[Offer]:
        """The configured machines, or one that fits everything."""
        return self.backend.offers(gpu_count)

    def known_offers(self, gpu_count: int) -> Sequence[Offer]:
        """The same machines, without asking how many are left."""
        offers = self.backend.config.offers_for(gpu_count, lambda name: 0)
        return [replace(offer, stock=Stock.UNKNOWN) for offer in offers]

    async def watch_instances(self) -> AsyncIterator[Observation]:
        """Changes at the moment they happen."""
        async with aclosing(self.backend.watch(self._cluster_id)) as changes:
            async for observation in changes:
                yield observation

    async def read_logs(
        self, ref: InstanceRef, container: str, options: LogOptions
    ) -> AsyncIterator[LogLine]:
        """What a container has written, and with ``follow`` what it writes until it ends."""
        if options.previous:
            raise NotSupportedError("the fake service never restarts a container")
        async with aclosing(read_logs(self.backend, ref, container, options)) as lines:
            async for line in lines:
                yield line
