"""Modal behind the seam: each method is one translation and one errand of the client's.

Fed by the core; rests on ``translate``, ``observe``, ``offers``, ``memory`` (pure) and ``client``
(I/O).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Self

from vk_provider.faults import InstanceNotFoundError, NotSupportedError, RejectedError
from vk_provider.provider import (
    ContainerIO,
    ExecRequest,
    Explanation,
    InstanceRef,
    LogLine,
    LogOptions,
    NodeCapacity,
    Observation,
    Offer,
    ProviderContext,
    ProviderTraits,
    ResolvedPod,
)
from vk_provider_modal import explain, logs, offers, streams
from vk_provider_modal.client import ModalClient, ReadTokens
from vk_provider_modal.config import ModalConfig, parse_config
from vk_provider_modal.facts import Result
from vk_provider_modal.memory import FORGET_SECONDS, Memory
from vk_provider_modal.observe import observe
from vk_provider_modal.stamp import app_name, cluster_tags, read_mark
from vk_provider_modal.translate import translate

MOST_AT_ONCE = 20
"""So many sandboxes are asked about side by side when they have left the list."""


class ModalProvider:
    """One Modal workspace. ``list_offers``, ``known_offers``, ``read_logs`` and ``exec`` come on
    top."""

    def __init__(self, config: ModalConfig, context: ProviderContext) -> None:
        self._config = config
        app = config.app or app_name(context.cluster_id)
        self._client = ModalClient(config, app, _token_reader(config, context))
        self._memory = Memory(context.cluster_id)
        self._listing = asyncio.Lock()
        self._traits = ProviderTraits(
            list_lag_seconds=config.list_lag_seconds,
            create_timeout_seconds=config.image_build_timeout_seconds
            + config.capacity_wait_seconds
            + 4 * config.request_timeout_seconds,
            delete_timeout_seconds=2 * config.request_timeout_seconds + 10,
            # An ended one is, but one that is replaced before its time limit still runs.
            ended_is_free=False,
            starting_is_free=True,
        )

    @property
    def traits(self) -> ProviderTraits:
        return self._traits

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._client.__aexit__(*exc)

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        return explain.explain(pod, offer, self._config)

    async def create_instance(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        request = translate(pod, offer, self._config).request
        made = await self._client.create_sandbox(request)
        self._memory.created(replace(made, created_at=datetime.now(UTC).timestamp()))
        return InstanceRef(made.id)

    async def delete_instance(self, ref: InstanceRef, grace_seconds: int) -> None:
        # Modal ends a sandbox without a grace period.
        with suppress(InstanceNotFoundError):
            await self._client.delete_sandbox(ref.id)
        self._memory.deleted(ref.id)

    async def list_instances(self) -> Sequence[Observation]:
        # One walk at a time: two would take turns in forgetting what the other has learnt.
        async with self._listing:
            return await self._survey()

    async def capacity(self) -> NodeCapacity:
        return NodeCapacity()

    async def list_offers(self, gpu_count: int) -> Sequence[Offer]:
        return offers.offers(gpu_count, self._config, await self._rates() if gpu_count else {})

    def known_offers(self, gpu_count: int) -> Sequence[Offer]:
        return offers.known_offers(gpu_count, self._config)

    def read_logs(
        self, ref: InstanceRef, container: str, options: LogOptions
    ) -> AsyncIterator[LogLine]:
        if options.previous:
            raise NotSupportedError("Modal keeps no log of a previous container")
        return logs.read_logs(self._client, ref.id, options)

    async def exec(self, ref: InstanceRef, request: ExecRequest, io: ContainerIO) -> int:
        await self._check_container(ref.id, request.container)
        return await streams.Session(self._client, ref.id, request).run(io)

    async def _check_container(self, sandbox_id: str, container: str) -> None:
        mark = self._memory.mark_of(sandbox_id) or read_mark(await self._client.tags_of(sandbox_id))
        if mark is not None and mark.container != container:
            raise InstanceNotFoundError(f"sandbox {sandbox_id} has no container {container}")

    async def _survey(self) -> Sequence[Observation]:
        memory, now = self._memory, datetime.now(UTC)
        since = None if memory.has_looked_back else now.timestamp() - FORGET_SECONDS
        tags = cluster_tags(memory.cluster_id)
        listed = await self._client.list_sandboxes(tags, since)
        missing = memory.take(listed, now.timestamp())
        memory.has_looked_back = True
        turns = asyncio.Semaphore(MOST_AT_ONCE)
        await asyncio.gather(*(self._ask(key, turns) for key in missing))
        for sandbox in memory.without_tunnels():
            tunnels = await self._client.tunnels_of(sandbox.id)
            memory.tunnelled(sandbox.id, replace(sandbox, tunnels=tunnels))
        margin = self._config.expiry_margin_seconds
        return [observe(sandbox, mark, now, margin) for sandbox, mark in memory.all()]

    async def _ask(self, sandbox_id: str, turns: asyncio.Semaphore) -> None:
        found: Result | None = None
        async with turns:
            try:
                found = await self._client.result_of(sandbox_id)
            except InstanceNotFoundError:
                found = None
        self._memory.settle(sandbox_id, found)

    async def _rates(self) -> Mapping[str, float]:
        """Prices by the service's names for them; none where the tokens may not see any."""
        try:
            return offers.numbers(await self._client.rates())
        except RejectedError:
            return {}


def _token_reader(config: ModalConfig, context: ProviderContext) -> ReadTokens:
    async def read() -> tuple[str, str]:
        # A configuration without them is refused.
        assert config.token_id is not None
        assert config.token_secret is not None
        return (
            await config.token_id.read(context.read_secret),
            await config.token_secret.read(context.read_secret),
        )

    return read


def factory(config: Mapping[str, Any], context: ProviderContext) -> ModalProvider:
    """The entry point ``modal``. Raises ``ConfigError`` with all problems."""
    return ModalProvider(parse_config(config, context.config_path), context)
