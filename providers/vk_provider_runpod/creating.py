"""Making one instance: what the account must be asked first, the one create call, the bill.

Fed by ``provider.create_instance``; rests on ``translate`` and ``price`` (pure), and on ``client``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vk_provider.faults import (
    FieldProblem,
    KubeError,
    KubeUnavailableError,
    OutcomeUnknownError,
    OutOfCapacityError,
    ProviderError,
    RejectedError,
    UnavailableError,
    UnsupportedFieldsError,
)
from vk_provider.pods.pull_secrets import credential_for
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import InstanceRef, Offer, RegistryCredential, ResolvedPod
from vk_provider.provider import ReadClaim
from vk_provider_runpod.claims import volume_of, why_not
from vk_provider_runpod.client import RunPodClient
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.memory import Memory
from vk_provider_runpod.network_volumes import NetworkVolumes
from vk_provider_runpod.price import overcharge
from vk_provider_runpod.registries import Registries
from vk_provider_runpod.stamp import Mark
from vk_provider_runpod.streams import Shells
from vk_provider_runpod.translate import Known, translate
from vk_provider_runpod.volumes import CLAIMED, claim_of


class Maker:
    """Makes instances of one account."""

    def __init__(
        self,
        config: RunPodConfig,
        client: RunPodClient,
        memory: Memory,
        shells: Shells,
        registries: Registries,
        read_claim: ReadClaim | None = None,
    ) -> None:
        self._config = config
        self._client = client
        self._memory = memory
        self._shells = shells
        self._registries = registries
        self._read_claim = read_claim
        self._volumes = NetworkVolumes(client)

    async def make(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        """See ``Provider.create_instance``."""
        # First the translation, so that a pod that can't run makes no registry.
        body = translate(pod, offer, self._config, self.known()).body
        body = translate(pod, offer, self._config, await self._learn(pod, offer, body)).body
        created = await self._create(pod, body)
        ref = InstanceRef(created["id"])
        self._memory.created(ref.id, Mark(pod.stamp, pod.containers[0].name))
        excess = overcharge(created, pod, self._config)
        if excess is not None:
            await self._undo(ref, excess)
        return ref

    def known(self) -> Known:
        """What is known without asking anybody."""
        claimed = CLAIMED if self._read_claim is not None else None
        return Known(public_key=self._shells.public_key, claimed=claimed)

    async def _learn(self, pod: ResolvedPod, offer: Offer, body: Mapping[str, Any]) -> Known:
        """What the account must be asked for before this body can be sent."""
        registry = None
        credential = _credential(pod)
        if credential is not None and "registry" not in body:
            registry = await self._registries.id_of(credential)
        mounts = [each for _, each in mappings(mapping(body, "mounts"), "network")]
        volume = text(mounts[0], "volumeId") if mounts else None
        if volume == CLAIMED:
            volume = await self._claimed(pod)
        places = await self._places(offer, body, volume)
        return Known(registry, await self._shells.refresh(), places, volume)

    async def _claimed(self, pod: ResolvedPod) -> str:
        """The network volume that the pod's claim stands for."""
        assert self._read_claim is not None
        path, name = claim_of(pod)
        try:
            claim, volume = await self._read_claim(pod.stamp.namespace, name)
        except KubeUnavailableError as error:
            raise UnavailableError(f'claim "{name}" can\'t be read now: {error}') from error
        except KubeError as error:
            problem = FieldProblem(path, f'claim "{name}" can\'t be read: {error}')
            raise UnsupportedFieldsError([problem]) from error
        found = volume_of(claim, volume)
        if found is None:
            raise UnsupportedFieldsError([FieldProblem(path, why_not(name, claim, volume))])
        return found

    async def _places(
        self, offer: Offer, body: Mapping[str, Any], volume: str | None
    ) -> tuple[str, ...]:
        """The data centres that it may be made in; none: RunPod chooses."""
        wished = body.get("dataCenterIds") or ()
        if volume is not None:
            place = await self._volumes.place_of(volume)
            if wished and place not in wished:
                raise RejectedError(
                    f'network volume "{volume}" is in {place}, and can be mounted nowhere else; '
                    f"this offer is for {', '.join(wished)}"
                )
            return (place,)
        if offer.data_center:
            return ()
        kind = (body.get("gpu") or body["cpu"])["id"]
        return self._memory.avoiding.places(kind, wished, self._memory.now)

    async def _create(self, pod: ResolvedPod, body: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return await self._client.create_pod(body)
        except RejectedError as fault:
            credential = _credential(pod)
            self._registries.forget()
            if credential is not None and not await self._registries.has(credential):
                # It was there when we looked: whoever shares the account has collected it.
                raise UnavailableError(
                    f"the registry's login was removed meanwhile: {fault}"
                ) from fault
            raise

    async def _undo(self, ref: InstanceRef, excess: str) -> None:
        """End an instance that is billed at more than was allowed, before it costs anything."""
        try:
            await self._client.delete_pod(ref.id)
        except ProviderError as fault:
            # It bills, and lists show it: as one that has ended, so that the core ends it.
            self._memory.dismiss(ref.id, excess, is_ordered=False)
            raise OutcomeUnknownError(f"{excess}; ending it failed: {fault}") from fault
        self._memory.dismiss(ref.id, excess, is_ordered=True)
        raise OutOfCapacityError(f"{excess}; it was ended again at once")


def _credential(pod: ResolvedPod) -> RegistryCredential | None:
    return credential_for(pod.containers[0].image, pod.pull_credentials)
