"""What is there: the list, whatever has left it, and addresses that a list does not show.

Fed by ``provider``; rests on ``workspace`` (I/O), ``memory`` and ``observe`` (pure).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from vk_provider.faults import InstanceNotFoundError, ProviderError
from vk_provider.provider import Observation
from vk_provider_modal.facts import Result, Sandbox
from vk_provider_modal.memory import FORGET_SECONDS, Memory
from vk_provider_modal.observe import observe
from vk_provider_modal.stamp import cluster_tags, read_mark
from vk_provider_modal.workspace import Workspace

MOST_AT_ONCE = 20
"""So many sandboxes are asked about side by side when they have left the list."""


class Survey:
    """One session's view of a cluster's sandboxes."""

    def __init__(self, workspace: Workspace, cluster_id: str, margin_seconds: int) -> None:
        self._workspace = workspace
        self._memory = Memory(cluster_id)
        self._margin_seconds = margin_seconds
        self._listing = asyncio.Lock()

    def created(self, sandbox: Sandbox) -> None:
        """A sandbox of ours was made just now."""
        now = datetime.now(UTC).timestamp()
        self._memory.created(replace(sandbox, created_at=now))

    def deleted(self, sandbox_id: str) -> None:
        """Modal took our order to end one."""
        self._memory.deleted(sandbox_id)

    def bills_to(self, tag: str) -> str | None:
        """The sandbox of the pod with this tag, also some time after it is gone."""
        known = self._memory.billed.get(tag)
        return None if known is None else known[0]

    async def observations(self) -> Sequence[Observation]:
        """Every sandbox of the cluster that is there, or has ended and was not deleted."""
        # One walk at a time: two would take turns in forgetting what the other has learnt.
        async with self._listing:
            memory, now = self._memory, datetime.now(UTC)
            since = None if memory.has_looked_back else now.timestamp() - FORGET_SECONDS
            tags = cluster_tags(memory.cluster_id)
            # What a create still waits for has no machine and may be given up for the next offer:
            # it is told once the create has an outcome, or nobody waits for it any more.
            before = self._workspace.sendings.names()
            listed = await self._workspace.list_sandboxes(tags, since)
            hidden = before | self._workspace.sendings.names()
            shown = [each for each in listed if each.name not in hidden]
            missing = memory.take(shown, now.timestamp())
            memory.has_looked_back = True
            turns = asyncio.Semaphore(MOST_AT_ONCE)
            await asyncio.gather(*(self._ask(key, turns) for key in missing))
            await asyncio.gather(
                *(self._look_for_tunnels(each, turns) for each in memory.without_tunnels())
            )
            margin = self._margin_seconds
            return [observe(sandbox, mark, now, margin) for sandbox, mark in memory.all()]

    async def check_container(self, sandbox_id: str, container: str) -> None:
        """Raises ``InstanceNotFoundError`` for a sandbox or container that is not there."""
        mark = self._memory.mark_of(sandbox_id)
        if mark is None:
            mark = read_mark(await self._workspace.tags_of(sandbox_id))
        if mark is not None and mark.container != container:
            raise InstanceNotFoundError(f"sandbox {sandbox_id} has no container {container}")

    async def tunnels(self, sandbox_id: str) -> Mapping[int, str]:
        """Container port -> address outside, asked for only while no list has shown them."""
        known = self._memory.running.get(sandbox_id)
        if known is not None and known[0].tunnels:
            return known[0].tunnels
        return await self._workspace.tunnels_of(sandbox_id)

    async def _ask(self, sandbox_id: str, turns: asyncio.Semaphore) -> None:
        found: Result | None = None
        async with turns:
            try:
                found = await self._workspace.result_of(sandbox_id)
            except InstanceNotFoundError:
                found = None
        self._memory.settle(sandbox_id, found)

    async def _look_for_tunnels(self, sandbox: Sandbox, turns: asyncio.Semaphore) -> None:
        # Addresses are no reason to lose a list: they are asked for again with the next one.
        async with turns:
            with suppress(ProviderError):
                tunnels = await self._workspace.tunnels_of(sandbox.id)
                self._memory.tunnelled(replace(sandbox, tunnels=tunnels))
