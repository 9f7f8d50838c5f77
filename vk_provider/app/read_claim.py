"""Reads a claim of the home cluster with its volume, for backends that have one to match.

Asked for when an instance is made that mounts it, and not kept. Fed by ``kube.client``; feeds
providers.
"""

from __future__ import annotations

from vk_provider.faults import KubeNotFoundError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.pods.reading import mapping, text
from vk_provider.pods.types import Json


class ClaimReader:
    """Implements :data:`vk_provider.provider.ReadClaim` as :meth:`read`."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def read(self, namespace: str, name: str) -> tuple[Json, Json]:
        """The claim and what it is bound to. Raises KubeError."""
        claim = await self._found(paths.claim(namespace, name))
        volume = text(mapping(claim, "spec"), "volumeName")
        return claim, await self._found(paths.volume(volume)) if volume else {}

    async def _found(self, path: str) -> Json:
        try:
            return await self._client.get(path)
        except KubeNotFoundError:
            return {}
