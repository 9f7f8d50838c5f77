"""What goes wrong beside the kills: the account's misfortunes, and troubles of a larger kind.

Fed by ``crashes``, which plays a trouble as one of its rounds: the kill comes on top.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Iterable, Mapping
from typing import Any

from tests.e2e.crash_stage import DEPLOYMENT, CrashStage
from tests.rig.polling import eventually

FAULTS: tuple[Mapping[str, Any], ...] = (
    {"kind": "error-after", "probability": 0.15},
    {"kind": "error", "probability": 0.08},
    {"kind": "reset", "probability": 0.04},
    {"kind": "reset-after", "probability": 0.04},
    {"kind": "hang-after", "probability": 0.04, "holdMs": 3000},
    {"kind": "hold", "probability": 0.05, "holdMs": 2500},
    {"kind": "error-after", "operation": "deletePod", "probability": 0.05},
    {"kind": "lingering", "probability": 0.1, "seconds": 4},
    {"kind": "repeat-page", "probability": 0.05},
    {"kind": "broken-page", "probability": 0.03},
)
DOUBT: tuple[Mapping[str, Any], ...] = (
    {"kind": "error-after", "probability": 0.5},
    {"kind": "reset", "probability": 0.5},
    {"kind": "reset-after"},
)
OUTAGE: tuple[Mapping[str, Any], ...] = (
    {"kind": "garbage", "operation": "listPods", "probability": 0.3},
    {"kind": "empty-list", "operation": "listPods", "probability": 0.1},
    {"kind": "error", "operation": "*"},
)
TROUBLES = ("api_server", "outage", "freeze")
OUTAGE_SECONDS = 20.0
FREEZE_SECONDS = 4.0
"""Longer than the Lease: another replica leads when the frozen one wakes up."""


async def script_faults(stage: CrashStage, faults: Iterable[Mapping[str, Any]]) -> None:
    """Replace all faults of the account."""
    await stage.account.call("DELETE", "/faults")
    for fault in faults:
        await stage.account.ask("/faults", fault)


class Troubles:
    """Each is one round's overture."""

    def __init__(self, stage: CrashStage, rng: random.Random) -> None:
        self._stage = stage
        self._rng = rng

    async def api_server(self) -> None:
        """The API server restarts while pods come or go."""
        await self._shake()
        await self._stage.bed.restart_apiserver()
        await asyncio.sleep(self._rng.uniform(0, 2))

    async def outage(self) -> None:
        """The account answers nothing that is of use, for a while."""
        await self._shake()
        await script_faults(self._stage, OUTAGE)
        await asyncio.sleep(OUTAGE_SECONDS / self._stage.plan.speed)
        await script_faults(self._stage, FAULTS)
        await asyncio.sleep(self._rng.uniform(0, 2))

    async def freeze(self) -> None:
        """The leader stands still for longer than its Lease, then goes on as if nothing was."""
        await self._shake()
        frozen = await eventually(self._stage.leader, "a leader", seconds=60, interval=0.05)
        pid = self._stage.bed.pids[frozen.name]
        await asyncio.sleep(self._rng.uniform(0, 0.6))
        await self._stage.bed.signal(frozen.name, signal.SIGSTOP)
        await asyncio.sleep(FREEZE_SECONDS + self._rng.uniform(0, 2))
        if self._stage.bed.pids[frozen.name] == pid:
            await self._stage.bed.signal(frozen.name, signal.SIGCONT)
        await asyncio.sleep(self._rng.uniform(0, 1))

    async def _shake(self) -> None:
        await self._stage.scale("deployments", DEPLOYMENT, self._rng.randint(2, 9))
        await asyncio.sleep(self._rng.uniform(0, 0.4))
