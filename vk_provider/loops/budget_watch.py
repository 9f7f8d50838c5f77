"""Holds the budget: looks at the money at every tick, whether or not lists come in.

First the door closes, then those who must go are told; people are warned once per period before
that. Backends that report what they billed are asked now and then: their word replaces ours.
Fed by ``loops.spending``; wakes pods in ``loops.pod_workers`` and emits Events about the Node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import timedelta

from vk_provider.faults import ProviderError
from vk_provider.kube.events import NodeRef
from vk_provider.loops.backend import Backend
from vk_provider.loops.pod_workers import PodWorkers
from vk_provider.loops.shell import Shell
from vk_provider.loops.threshold import Threshold
from vk_provider.placement.budget import Share
from vk_provider.placement.reports import hour_of
from vk_provider.pods.stimuli import Woken
from vk_provider.provider import SupportsSpend

logger = logging.getLogger(__name__)

ASK_SECONDS = 300.0
ASK_BACK_HOURS = 6
NEARLY_SPENT = "BudgetNearlySpent"
SPENT = "BudgetSpent"

Emit = Callable[[NodeRef, str, str, str], None]


class BudgetWatch:
    """The eye on one node's money."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        workers: PodWorkers,
        threshold: Threshold,
        emit: Emit,
        shell: Shell,
    ) -> None:
        self._backends = {
            name: backend
            for name, backend in backends.items()
            if isinstance(backend.provider, SupportsSpend)
        }
        self._workers = workers
        self._threshold = threshold
        self._emit = emit
        self._shell = shell
        self._said: dict[tuple[str, str, str], str] = {}
        self._failing: set[str] = set()
        threshold.spending.budget.meters.lines.backends.update(self._backends)

    async def run(self) -> None:
        """Look at every tick until cancelled."""
        asked = self._shell.clock.steady()
        while True:
            await asyncio.sleep(self._threshold.spending.budget.tick_seconds)
            if not self._shell.may_act():
                continue
            self.look()
            if self._shell.clock.steady() - asked >= ASK_SECONDS:
                asked = self._shell.clock.steady()
                for backend in self._backends.values():
                    await self.ask(backend)

    def look(self) -> None:
        """The door, the warnings, and those who must go: in this order."""
        spending = self._threshold.spending
        spending.look()
        self._threshold.look()
        for share in spending.budget.warnings(spending.now()):
            self._warn(NEARLY_SPENT, share, share.words)
            if share.share >= 1 or self._is_closed_by(share):
                self._warn(SPENT, share, f"{share.words}; nothing that costs money starts here")
        for uid in spending.dismissed:
            if uid in self._workers.records:
                self._workers.post(uid, Woken())

    async def ask(self, backend: Backend) -> None:
        """What a backend itself says that instances cost."""
        since = hour_of(self._shell.clock.now()) - timedelta(hours=ASK_BACK_HOURS)
        try:
            reports = await backend.spend(since)
        except ProviderError as fault:
            if backend.name not in self._failing:
                logger.warning(
                    "backend %s: its bill can't be read, so spend is reckoned: %s",
                    backend.name, fault,
                )  # fmt: skip
            self._failing.add(backend.name)
            return
        self._failing.discard(backend.name)
        self._threshold.spending.reported(backend.name, reports)

    def _is_closed_by(self, share: Share) -> bool:
        """Whether this very cap lets nothing in any more."""
        dismissed = self._threshold.spending.dismissed.values()
        return share.name in "; ".join([*dismissed, self._threshold.money.closed()])

    def _warn(self, reason: str, share: Share, message: str) -> None:
        """Once per cap and period."""
        cap = (reason, share.scope, share.period)
        if self._said.get(cap) == share.key or not self._threshold.node_uid:
            return
        self._said[cap] = share.key
        logger.warning("node %s: %s", self._shell.node, message)
        about = NodeRef(self._shell.node, self._threshold.node_uid)
        self._emit(about, "Warning", reason, message)
