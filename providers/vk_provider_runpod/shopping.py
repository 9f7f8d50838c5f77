"""What RunPod offers, and what a pod would pay for it.

A GPU's price is the instance's. CPU instances are priced by the vCPU and sold in several sizes, so
that only the pod's own size makes a price of a flavour.
Fed by the core; rests on ``offers`` (pure) and ``client``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from vk_provider.doubts import Doubt
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import Offer, ResolvedPod
from vk_provider_runpod import offers
from vk_provider_runpod.client import RunPodClient
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.doubts import not_sold
from vk_provider_runpod.memory import Memory
from vk_provider_runpod.streams import RunPodStreams, Shells
from vk_provider_runpod.translate import vcpus_of

logger = logging.getLogger(__name__)


class RunPodShop(RunPodStreams):
    """The catalogue of one account."""

    def __init__(
        self, config: RunPodConfig, client: RunPodClient, shells: Shells, memory: Memory
    ) -> None:
        super().__init__(config, client, shells, memory.cluster_id)
        self._memory = memory
        self._usd_per_vcpu: Mapping[str, float] = {}
        self._missed: set[str] = set()

    async def list_offers(self, gpu_count: int) -> Sequence[Offer]:
        """As the catalogue has them now."""
        if gpu_count:
            catalogue = await self._client.list_gpus(gpu_count)
            self._memory.avoiding.learn(catalogue)
            self._miss(catalogue)
            return offers.gpu_offers(catalogue, gpu_count, self._config)
        catalogue = await self._client.list_cpus()
        self._memory.avoiding.learn(catalogue)
        self._usd_per_vcpu = rates(catalogue)
        return offers.cpu_offers(catalogue, self._config)

    def doubts(self) -> Sequence[Doubt]:
        """Names of the configuration that RunPod is not known to have."""
        return self._config.doubts

    def _miss(self, catalogue: Mapping[str, Any]) -> None:
        """Say once of each configured GPU type that it is not to be had at all."""
        for name, words in not_sold(self._config.gpu_types, catalogue):
            if name not in self._missed:
                self._missed.add(name)
                logger.warning("%s", words)

    def known_offers(self, gpu_count: int) -> Sequence[Offer]:
        """As the configuration alone names them."""
        return offers.known_offers(gpu_count, self._config)

    def priced(self, pod: ResolvedPod, offer: Offer) -> Offer:
        """A CPU offer at the price of the size that this pod gets."""
        rate = self._usd_per_vcpu.get(offer.id.partition(" ")[0])
        if pod.gpu_count or rate is None or not pod.containers:
            return offer
        return replace(offer, usd_per_hour=round(rate * vcpus_of(pod, offer, self._config), 6))


def rates(catalogue: Mapping[str, Any]) -> dict[str, float]:
    """USD per hour for one vCPU, by flavour."""
    found = {
        text(entry, "id").partition("-")[0]: mapping(entry, "price").get("securePerVcpu")
        for _, entry in mappings(catalogue, "cpus")
    }
    return {
        flavour: float(rate)
        for flavour, rate in found.items()
        if isinstance(rate, int | float) and not isinstance(rate, bool) and rate > 0
    }
