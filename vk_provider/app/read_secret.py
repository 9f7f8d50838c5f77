"""Reads one key of a Secret of the home cluster, for whoever was configured with a reference.

Fed by ``kube.client``; feeds providers and the bursting side.
"""

from __future__ import annotations

import base64

from vk_provider.faults import InvalidObjectError, KubeNotFoundError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient


class SecretReader:
    """Implements :data:`vk_provider.secrets.ReadSecret` as :meth:`read`."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def read(self, namespace: str, name: str, key: str) -> str:
        """The value. Raises KubeError."""
        secret = await self._client.get(f"{paths.secrets(namespace)}/{name}")
        data = secret.get("data") or {}
        if key not in data:
            raise KubeNotFoundError(f"Secret {namespace}/{name} has no key {key}", 404)
        try:
            return base64.b64decode(data[key]).decode()
        except ValueError:
            # The original could carry bytes of the secret, so it is not chained.
            message = f"key {key} of Secret {namespace}/{name} is not UTF-8 text"
            raise InvalidObjectError(message) from None
