"""Pull credentials as RunPod registries: found by a name made of their content, made once.

One registry serves every pod with the same login; it holds no pod's name, so it is never wrong to
share it. What no instance uses any more is deleted after an hour or two.
Fed by ``provider`` with the login that fits a pod's image; speaks through ``client``.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from vk_provider.faults import ProviderError, RejectedError, UnavailableError
from vk_provider.pods.reading import mappings, text
from vk_provider.pods.types import RegistryCredential
from vk_provider_runpod.client import RunPodClient

_ROUNDS = 20_000
MOST_KNOWN = 1000
FIRST_COLLECT_SECONDS = 600.0
COLLECT_SECONDS = 3600.0
"""How often is looked for unused ones. Twice in a row unused, and one is deleted."""
COLLECTING_SECONDS = 20.0
_OURS = re.compile(r"vk-provider-[0-9a-f]{24}")

logger = logging.getLogger(__name__)


def registry_name(credential: RegistryCredential) -> str:
    """The same for the same login. Slow on purpose: the name is no way to guess a password."""
    owner = f"{credential.registry}\0{credential.username}".encode()
    digest = hashlib.pbkdf2_hmac("sha256", credential.password.encode(), owner, _ROUNDS)
    return f"vk-provider-{digest.hex()[:24]}"


class Registries:
    """The ids of registries that this session has used; only ids, never logins."""

    def __init__(
        self, client: RunPodClient, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._monotonic = monotonic
        self._ids: dict[str, str] = {}
        self._used_at: dict[str, float] = {}
        self._idle: set[str] = set()
        self._collect_at = monotonic() + FIRST_COLLECT_SECONDS
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
            self._used_at[self._ids[name]] = self._monotonic()
            return self._ids[name]

    async def has(self, credential: RegistryCredential) -> bool:
        """Whether the account has this login."""
        return await self._find(registry_name(credential)) is not None

    async def collect(self, pods: Sequence[Mapping[str, Any]]) -> None:
        """Now and then, delete what this product made and no instance in the account has used
        for a while. ``pods`` is a complete list of everybody's."""
        now = self._monotonic()
        if now < self._collect_at:
            return
        self._collect_at = now + COLLECT_SECONDS
        used = {text(pod, "registry") for pod in pods}
        try:
            async with asyncio.timeout(COLLECTING_SECONDS), self._lock:
                await self._collect(used, now)
        except (ProviderError, TimeoutError) as fault:
            logger.info("unused registry logins were not looked for: %s", fault)

    async def _collect(self, used: Collection[str], now: float) -> None:
        ours = {
            text(registry, "id"): text(registry, "name")
            for _, registry in mappings(await self._client.list_registries(), "registries")
            if _OURS.fullmatch(text(registry, "name"))
        }
        idle = ours.keys() - set(used) - self._just_used(now)
        for registry_id in idle & self._idle:
            # Another cluster may be about to use it; RunPod refuses to delete what is in use.
            await self._client.delete_registry(registry_id)
            self._ids.pop(ours[registry_id], None)
        self._idle = set(idle)

    def _just_used(self, now: float) -> set[str]:
        """What a create that is not in any list yet may rest on."""
        self._used_at = {key: at for key, at in self._used_at.items() if now < at + COLLECT_SECONDS}
        return set(self._used_at)

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
