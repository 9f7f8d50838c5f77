"""Asks running containers over SSH what they use: those that let us in, in one bounded round.

Fed by ``streams`` with the instances of a list; speaks through ``ssh``, reads with ``cgroups``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress

import asyncssh

from vk_provider.faults import NotSupportedError, ProviderError
from vk_provider.pods.types import InstanceRef
from vk_provider_runpod.cgroups import SCRIPT, Usage, parse
from vk_provider_runpod.remote_shell import aside
from vk_provider_runpod.ssh import Connections, spoken

ROUND_SECONDS = 4.0
"""For all of them: whoever scrapes has no more patience."""
FAILED_SECONDS = 300.0
"""Whoever did not let us in is not asked again for so long."""
MOST_BYTES = 64 * 1024
_AT_ONCE = 16


class Measuring:
    """Which instances can be asked, and when one that could not may be asked again."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._again_at: dict[str, float] = {}

    async def measure(self, containers: Mapping[str, str]) -> Mapping[str, Usage]:
        """Usage by instance, for instances by their id with their container's name."""
        now = time.monotonic()
        self._again_at = {
            key: at for key, at in self._again_at.items() if key in containers and now < at
        }
        found: dict[str, Usage] = {}
        turns = asyncio.Semaphore(_AT_ONCE)

        async def ask(instance: str, container: str) -> None:
            async with turns:
                # Until it has answered it counts as one that does not.
                self._again_at[instance] = now + FAILED_SECONDS
                with suppress(ProviderError, NotSupportedError):
                    found[instance] = await self._ask(InstanceRef(instance), container)
                    del self._again_at[instance]

        asking = [
            asyncio.create_task(ask(*each))
            for each in containers.items()
            if each[0] not in self._again_at
        ]
        if asking:
            _, late = await asyncio.wait(asking, timeout=ROUND_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        return found

    async def _ask(self, ref: InstanceRef, container: str) -> Usage:
        nowhere = asyncssh.DEVNULL
        async with self._connections.process(
            ref, container, aside(SCRIPT), stdin=nowhere, stderr=nowhere
        ) as process:
            with spoken(ref):
                printed = await process.stdout.read(MOST_BYTES)
                while chunk := await process.stdout.read(MOST_BYTES):
                    printed += chunk
                    if len(printed) > MOST_BYTES:
                        break
        return parse(printed.decode(errors="replace"))
