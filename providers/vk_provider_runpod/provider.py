"""RunPod behind the seam: each method is one translation and one call.

Fed by the core; rests on ``translate``, ``observe``, ``offers`` (pure) and ``client`` (I/O).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self

from vk_provider.pods.reading import text
from vk_provider.provider import (
    Explanation,
    InstanceRef,
    NodeCapacity,
    Observation,
    Offer,
    ProviderContext,
    ProviderTraits,
    ResolvedPod,
    SpendReport,
)
from vk_provider.secrets import SecretSource
from vk_provider_runpod import bill, explain, logs
from vk_provider_runpod.budget import CREATE_WAIT_SECONDS
from vk_provider_runpod.client import RunPodClient
from vk_provider_runpod.config import RunPodConfig, parse_config
from vk_provider_runpod.creating import Maker
from vk_provider_runpod.diagnosis import diagnose
from vk_provider_runpod.memory import Memory, age
from vk_provider_runpod.observe import observe
from vk_provider_runpod.registries import Registries
from vk_provider_runpod.shopping import RunPodShop
from vk_provider_runpod.streams import Shells
from vk_provider_runpod.transport import ReadKey

DIAGNOSIS_SECONDS = 3.0


class RunPodProvider(RunPodShop):
    """One RunPod account."""

    def __init__(self, config: RunPodConfig, context: ProviderContext) -> None:
        key = _reader(config.api_key, context)
        client = RunPodClient(config, context.user_agent, key, context.may_act)
        ssh_key = config.ssh.private_key if config.ssh else None
        shells = Shells(config, client, _reader(ssh_key, context))
        memory = Memory(context.cluster_id, timedelta(seconds=config.list_lag_seconds))
        super().__init__(config, client, shells, memory)
        self._registries = Registries(client)
        self._maker = Maker(config, client, memory, shells, self._registries, context.read_claim)
        self._listing = asyncio.Lock()
        self._traits = ProviderTraits(
            list_lag_seconds=config.list_lag_seconds,
            create_timeout_seconds=config.create_timeout_seconds + CREATE_WAIT_SECONDS,
            delete_timeout_seconds=config.request_timeout_seconds + 10,
            ended_is_free=False,
            ids_are_global=True,
            starting_is_free=False,
            switched_off=frozenset() if shells.can_log_in else frozenset({"exec", "port-forward"}),
        )

    @property
    def traits(self) -> ProviderTraits:
        return self._traits

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        await self._shells.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._shells.close()
        await self._client.__aexit__(*exc)

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        return explain.explain(pod, offer, self._config, self._maker.known())

    async def create_instance(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        return await self._maker.make(pod, offer)

    async def delete_instance(self, ref: InstanceRef, grace_seconds: int) -> None:
        # RunPod's delete has no grace period; a locked or clustered pod is a fault of the client's.
        await self._client.delete_pod(ref.id)
        self._memory.ordered(ref.id)

    async def list_instances(self) -> Sequence[Observation]:
        # One walk at a time: two would take turns in forgetting what the other has learnt.
        async with self._listing:
            pods, now = await self._client.list_pods()
            seen = await _survey(self._client, self._memory, pods, now)
            await self._registries.collect(pods)
        self._shells.keep(self._memory.known)
        return seen

    async def capacity(self) -> NodeCapacity:
        return NodeCapacity()

    async def read_spend(self, since: datetime) -> Sequence[SpendReport]:
        """Every pod of the account, ours by their ids, hour by hour."""
        answer, now = await self._client.read_bill(bill.query(since))
        return tuple(bill.reports(answer, now))


async def _survey(
    client: RunPodClient, memory: Memory, pods: Sequence[Mapping[str, Any]], now: datetime
) -> Sequence[Observation]:
    ours = {text(pod, "id"): pod for pod in memory.take(pods, now)}
    doubtful = memory.doubtful(list(ours.values()), now)
    # Exceptional, bounded reads: nothing in the list tells that an image can't be pulled.
    news = await asyncio.gather(
        *(logs.last_system_lines(client, key, DIAGNOSIS_SECONDS) for key in doubtful)
    )
    for key, lines in zip(doubtful, news, strict=True):
        ended = text(ours[key], "status") in ("EXITED", "ERROR")
        found = diagnose(lines, age(ours[key], now), ended=ended)
        if found is not None:
            memory.settle(key, found)
    memory.judge(list(ours.values()), now)
    return [observe(pod, memory.known[key]) for key, pod in ours.items()]


def _reader(source: SecretSource | None, context: ProviderContext) -> ReadKey:
    async def read() -> str:
        assert source is not None  # a configuration without it is refused
        return await source.read(context.read_secret)

    return read


def factory(config: Mapping[str, Any], context: ProviderContext) -> RunPodProvider:
    """The entry point ``runpod``. Raises ``ConfigError`` with all problems."""
    return RunPodProvider(parse_config(config, context.config_path), context)
