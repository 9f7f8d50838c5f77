"""RunPod behind the seam: each method is one translation and one call.

Fed by the core; rests on ``translate``, ``observe``, ``offers`` (pure) and ``client`` (I/O).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Self

from vk_provider.faults import NotSupportedError, RejectedError
from vk_provider.pods.pull_secrets import credential_for
from vk_provider.pods.reading import text
from vk_provider.provider import (
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
from vk_provider_runpod import explain, logs, offers
from vk_provider_runpod.budget import CREATE_WAIT_SECONDS
from vk_provider_runpod.client import RunPodClient
from vk_provider_runpod.config import RunPodConfig, parse_config
from vk_provider_runpod.diagnosis import diagnose
from vk_provider_runpod.memory import Memory, age
from vk_provider_runpod.observe import observe
from vk_provider_runpod.registries import Registries
from vk_provider_runpod.stamp import Mark
from vk_provider_runpod.translate import translate
from vk_provider_runpod.transport import ReadKey

DIAGNOSIS_SECONDS = 3.0


class RunPodProvider:
    """One RunPod account. ``list_offers``, ``known_offers`` and ``read_logs`` come on top."""

    def __init__(self, config: RunPodConfig, context: ProviderContext) -> None:
        self._config = config
        self._client = RunPodClient(config, context.user_agent, _key_reader(config, context))
        self._registries = Registries(self._client)
        self._memory = Memory(context.cluster_id)
        self._listing = asyncio.Lock()
        self._traits = ProviderTraits(
            list_lag_seconds=config.list_lag_seconds,
            create_timeout_seconds=config.create_timeout_seconds + CREATE_WAIT_SECONDS,
            delete_timeout_seconds=config.request_timeout_seconds + 10,
            ended_is_free=False,
            ids_are_global=True,
            starting_is_free=False,
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
        # First the translation, so that a pod that can't run makes no registry.
        body = translate(pod, offer, self._config).body
        container = pod.containers[0]
        credential = credential_for(container.image, pod.pull_credentials)
        if credential is not None and "registry" not in body:
            registry = await self._registries.id_of(credential)
            body = translate(pod, offer, self._config, registry).body
        try:
            created = await self._client.create_pod(body)
        except RejectedError:
            self._registries.forget()
            raise
        self._memory.created(created["id"], Mark(pod.stamp, container.name))
        return InstanceRef(created["id"])

    async def delete_instance(self, ref: InstanceRef, grace_seconds: int) -> None:
        # RunPod's delete has no grace period; a locked or clustered pod is a fault of the client's.
        await self._client.delete_pod(ref.id)

    async def list_instances(self) -> Sequence[Observation]:
        # One walk at a time: two would take turns in forgetting what the other has learnt.
        async with self._listing:
            return await _survey(self._client, self._memory)

    async def capacity(self) -> NodeCapacity:
        return NodeCapacity()

    async def list_offers(self, gpu_count: int) -> Sequence[Offer]:
        if gpu_count:
            catalogue = await self._client.list_gpus(gpu_count)
            return offers.gpu_offers(catalogue, gpu_count, self._config)
        return offers.cpu_offers(await self._client.list_cpus(), self._config)

    def known_offers(self, gpu_count: int) -> Sequence[Offer]:
        return offers.known_offers(gpu_count, self._config)

    def read_logs(
        self, ref: InstanceRef, container: str, options: LogOptions
    ) -> AsyncIterator[LogLine]:
        if options.previous:
            raise NotSupportedError("RunPod keeps no log of a previous container")
        return logs.read_logs(self._client, ref.id, options)


async def _survey(client: RunPodClient, memory: Memory) -> Sequence[Observation]:
    pods, now = await client.list_pods()
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
    return [observe(pod, memory.known[key]) for key, pod in ours.items()]


def _key_reader(config: RunPodConfig, context: ProviderContext) -> ReadKey:
    async def read() -> str:
        assert config.api_key is not None  # a configuration without a key is refused
        return await config.api_key.read(context.read_secret)

    return read


def factory(config: Mapping[str, Any], context: ProviderContext) -> RunPodProvider:
    """The entry point ``runpod``. Raises ``ConfigError`` with all problems."""
    return RunPodProvider(parse_config(config, context.config_path), context)
