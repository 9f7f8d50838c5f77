"""One configured backend at run time: a provider, its catalogue for a while, and bounded calls.

The core's retries of a create live here, and only of calls that provably created nothing. A call
that outlives the provider's own time limit has an unknown outcome.
Fed by ``loops.pod_workers``, ``loops.preparation`` and ``loops.relist``; calls the provider.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
from tenacity.wait import wait_exponential_jitter

from vk_provider.faults import (
    OutcomeUnknownError,
    ProviderError,
    ThrottledError,
    UnavailableError,
)
from vk_provider.loops.shell import Shell
from vk_provider.pods.masking import Veiled
from vk_provider.provider import (
    IMPLICIT_OFFER,
    InstanceRef,
    NodeCapacity,
    Observation,
    Offer,
    Provider,
    ResolvedPod,
    SpendReport,
    SupportsOffers,
    SupportsPricing,
    SupportsSpend,
)
from vk_provider.settings import BackendSettings

T = TypeVar("T")

CREATE_TRIES = 3
CREATE_RETRY_SECONDS = 30.0
OFFERS_SECONDS = 30.0
FAILED_OFFERS_SECONDS = 5.0
CALL_TIMEOUT_SECONDS = 30.0
LIST_TIMEOUT_SECONDS = 60.0


class Backend:
    """A named backend of one node."""

    def __init__(
        self, settings: BackendSettings, provider: Provider, node_name: str, shell: Shell
    ) -> None:
        self.name = settings.name
        self.provider_name = settings.provider
        self.provider = provider
        self._labels = (node_name, settings.name)
        self._clock = shell.clock
        self._metrics = shell.metrics
        self._may_act = shell.may_act
        self._offers: dict[int, tuple[float, Sequence[Offer] | ProviderError]] = {}
        self._asking = asyncio.Lock()

    async def offers(self, gpu_count: int) -> Sequence[Offer]:
        """What could carry so many GPUs: the catalogue, asked at most every OFFERS_SECONDS. A
        failure is remembered too, if shortly: a burst of pods must not queue for time-outs."""
        if not isinstance(self.provider, SupportsOffers):
            return (IMPLICIT_OFFER,)
        async with self._asking:
            fresh_until, kept = self._offers.get(gpu_count, (0.0, ()))
            if gpu_count not in self._offers or self._clock.steady() >= fresh_until:
                kept = await self._ask(self.provider, gpu_count)
        if isinstance(kept, ProviderError):
            raise kept
        return kept

    def priced(self, resolved: ResolvedPod, offers: Sequence[Offer]) -> Sequence[Offer]:
        """The offers at what this pod would pay for them."""
        if not isinstance(self.provider, SupportsPricing):
            return offers
        return tuple(self.provider.priced(resolved, offer) for offer in offers)

    async def _ask(
        self, provider: SupportsOffers, gpu_count: int
    ) -> Sequence[Offer] | ProviderError:
        answer: Sequence[Offer] | ProviderError
        try:
            answer = tuple(await self._bounded("offers", provider.list_offers(gpu_count)))
        except ProviderError as fault:
            answer = fault
        kept_for = FAILED_OFFERS_SECONDS if isinstance(answer, ProviderError) else OFFERS_SECONDS
        now = self._clock.steady()
        self._offers = {count: kept for count, kept in self._offers.items() if now < kept[0]}
        self._offers[gpu_count] = (now + kept_for, answer)
        return answer

    async def create(self, resolved: ResolvedPod, offer: Offer) -> InstanceRef:
        """One instance, or a fault; see ``Provider.create_instance`` for the faults."""
        begun = self._clock.steady()

        def is_enough(state: RetryCallState) -> bool:
            waited = self._clock.steady() - begun + state.upcoming_sleep
            return state.attempt_number >= CREATE_TRIES or waited > CREATE_RETRY_SECONDS

        tries = AsyncRetrying(
            retry=retry_if_exception_type(UnavailableError),
            stop=is_enough,
            wait=_pause,
            reraise=True,
        )
        async for attempt in tries:
            with attempt:
                return await self._create_once(resolved, offer)
        raise AssertionError("tenacity either returns or raises")

    async def delete(self, ref: InstanceRef, grace_seconds: int) -> None:
        """Order an instance's end; already gone is success."""
        if not self._may_act():
            raise UnavailableError("not ordered: another replica may lead now")
        limit = self.provider.traits.delete_timeout_seconds + grace_seconds
        await self._bounded("delete", self.provider.delete_instance(ref, grace_seconds), limit)

    async def list(self) -> Sequence[Observation]:
        """Everything with our cluster's stamp; complete or a fault."""
        begun = self._clock.steady()
        seen = await self._bounded("list", self.provider.list_instances(), LIST_TIMEOUT_SECONDS)
        took = self._clock.steady() - begun
        self._metrics.backend_list_seconds.labels(*self._labels).observe(took)
        return seen

    async def spend(self, since: datetime) -> Sequence[SpendReport]:
        """What the backend itself says that instances cost; nothing where it doesn't say."""
        if not isinstance(self.provider, SupportsSpend):
            return ()
        return await self._bounded("spend", self.provider.read_spend(since))

    async def capacity(self) -> NodeCapacity:
        """What the backend could carry at most."""
        return await self._bounded("capacity", self.provider.capacity())

    async def _create_once(self, resolved: ResolvedPod, offer: Offer) -> InstanceRef:
        if not self._may_act():
            raise UnavailableError("not created: another replica may lead now")
        limit = self.provider.traits.create_timeout_seconds
        try:
            # A backend may quote what it refuses, and its words are shown to people.
            async with asyncio.timeout(limit):
                with Veiled(resolved.secret_values):
                    ref = await self.provider.create_instance(resolved, offer)
        except TimeoutError as error:
            self._count("create", OutcomeUnknownError.reason)
            text = f"no answer to the create call within {limit:g} s"
            raise OutcomeUnknownError(text) from error
        except ProviderError as fault:
            self._count("create", fault.reason)
            raise
        self._count("create", "ok")
        return ref

    async def _bounded(
        self, call: str, work: Coroutine[Any, Any, T], limit: float = CALL_TIMEOUT_SECONDS
    ) -> T:
        try:
            async with asyncio.timeout(limit):
                answer = await work
        except TimeoutError as error:
            self._count(call, "timeout")
            raise UnavailableError(f"no answer to {call} within {limit:g} s") from error
        except ProviderError as fault:
            self._count(call, fault.reason)
            raise
        self._count(call, "ok")
        return answer

    def _count(self, call: str, outcome: str) -> None:
        self._metrics.backend_requests.labels(*self._labels, call, outcome).inc()


def _pause(state: RetryCallState) -> float:
    """A backend that asks for patience gets it; otherwise 1 s doubling, with jitter."""
    fault = state.outcome.exception() if state.outcome is not None else None
    if isinstance(fault, ThrottledError) and fault.retry_after_seconds is not None:
        return max(0.0, fault.retry_after_seconds)
    return float(wait_exponential_jitter(initial=1.0, max=10.0)(state))
