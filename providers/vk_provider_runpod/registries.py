"""Pull credentials as RunPod registries: found by a name made of their content, made once.

One registry serves every pod with the same login; it holds no pod's name, so it is never wrong to
share it. Fed by ``provider`` with the login that fits a pod's image; speaks through ``client``.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from vk_provider.faults import RejectedError, UnavailableError
from vk_provider.pods.reading import mappings, text
from vk_provider.pods.types import RegistryCredential
from vk_provider_runpod.client import RunPodClient

_ROUNDS = 20_000
MOST_KNOWN = 1000


def registry_name(credential: RegistryCredential) -> str:
    """The same for the same login. Slow on purpose: the name is no way to guess a password."""
    owner = f"{credential.registry}\0{credential.username}".encode()
    digest = hashlib.pbkdf2_hmac("sha256", credential.password.encode(), owner, _ROUNDS)
    return f"vk-provider-{digest.hex()[:24]}"


class Registries:
    """The ids of registries that this session has used; only ids, never logins."""

    def __init__(self, client: RunPodClient) -> None:
        self._client = client
        self._ids: dict[str, str] = {}
        self._lock = asyncio.Lock()

    async def id_of(self, credential: RegistryCredential) -> str:
        """The id of the registry with this login, which is made if there is none."""
        name = registry_name(credential)
        async with self._lock:
            if name not in self._ids:
                found = await self._find(name) or await self._make(name, credential)
                if len(self._ids) >= MOST_KNOWN:
                    self._ids.clear()
                self._ids[name] = found
        return self._ids[name]

    def forget(self) -> None:
        """Look again next time: somebody may have deleted one."""
        self._ids.clear()

    async def _find(self, name: str) -> str | None:
        listed = await self._client.list_registries()
        for _, registry in mappings(listed, "registries"):
            if text(registry, "name") == name and text(registry, "id"):
                return text(registry, "id")
        return None

    async def _make(self, name: str, credential: RegistryCredential) -> str:
        body = {"name": name, "username": credential.username, "password": credential.password}
        try:
            made: Any = await self._client.create_registry(body)
        except RejectedError:
            # Somebody else, a sibling node perhaps, has just made the same one.
            found = await self._find(name)
            if found is None:
                raise
            return found
        if not text(made, "id"):
            raise UnavailableError("RunPod, create registry: the answer names no id")
        return text(made, "id")
