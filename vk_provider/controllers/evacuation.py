"""Moves inference out of training's way before it is let in, and home again before it leaves.

Fed by ``controllers.cluster_view`` and ``controllers.deployments_view``; what
:mod:`vk_provider.bursting.evacuation` plans is written here, one write after another. A write that
fails is made up for by the next look.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from vk_provider.bursting import names
from vk_provider.bursting.evacuation import EvacuationLimits, Look, Plan, plan
from vk_provider.bursting.limits import HomecomingLimits
from vk_provider.bursting.picture import Picture, PodView
from vk_provider.bursting.signals import Kueue
from vk_provider.bursting.spare import supply
from vk_provider.bursting.surging import coming_home
from vk_provider.controllers.admission_checks import AdmissionChecks
from vk_provider.controllers.cluster_view import ClusterView
from vk_provider.controllers.deployments_view import DeploymentsView
from vk_provider.controllers.means import ControllerMeans
from vk_provider.controllers.move_writer import MoveWriter
from vk_provider.faults import KubeError
from vk_provider.kube import paths
from vk_provider.kube.client import PatchKind

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
SETTLE_SECONDS = 0.2
CHECKS_SECONDS = 15.0
NUDGE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class EvacuationRules:
    """``answers_checks``: Kueue may ask us."""

    limits: EvacuationLimits
    homecoming: HomecomingLimits
    answers_checks: bool = True


class Evacuation:
    """All moves of Deployments' pods in one cluster."""

    def __init__(
        self,
        means: ControllerMeans,
        view: ClusterView,
        rules: EvacuationRules,
    ) -> None:
        self._means = means
        self._view = view
        self._rules = rules
        self._changed = view.subscribe()
        self._deployments = DeploymentsView(means.client, self._changed.set)
        self._checks = AdmissionChecks(means.client)
        self._writer = MoveWriter(means)
        self._begun: Mapping[str, datetime] = {}
        self._nudged_at = -NUDGE_SECONDS

    async def run(self) -> None:
        """Turn until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._deployments.run())
            if self._rules.answers_checks:
                group.create_task(self._mind_checks())
            group.create_task(self._turn())

    async def _mind_checks(self) -> None:
        while True:
            version = self._view.kueue.version
            if version and self._means.may_act():
                try:
                    await self._checks.look(version, self._means.clock.now())
                except KubeError as fault:
                    logger.warning("AdmissionChecks can't be read: %s", fault)
                else:
                    self._changed.set()
            await asyncio.sleep(CHECKS_SECONDS if version else 1.0)

    async def _turn(self) -> None:
        await self._view.wait()
        while True:
            self._changed.clear()
            if self._means.may_act() and self._deployments.is_seen and self._knows_who_waits():
                await self._look()
            # What arrives together is looked at together.
            await asyncio.sleep(SETTLE_SECONDS)
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _knows_who_waits(self) -> bool:
        """Whether a job that does not show really is not there. What is under way for it would be
        undone otherwise: by a new leader, and whenever Kueue is away for a moment."""
        kueue = self._view.kueue
        if kueue.state is Kueue.MISSING:
            return False
        is_asked = self._rules.answers_checks and kueue.state is Kueue.SERVED
        return self._checks.are_known or not is_asked

    async def _look(self) -> None:
        now = self._means.clock.now()
        look = Look(self._view.picture(), self._deployments.deployments(), now, self._begun)
        look = replace(look, also_leaving=self._coming_home(look))
        limits = replace(self._rules.limits, checks=self._checks.names)
        found = plan(look, self._view.selection, limits)
        self._begun = found.begun
        self._count(found)
        for move in found.moves:
            if not self._means.may_act() or not await self._writer.carry_out(move):
                return
        if found.answers and self._means.may_act():
            await self._answer(found, now)
        if found.is_room_unnoticed and self._means.may_act():
            await self._nudge(look.picture, now)

    def _coming_home(self, look: Look) -> list[PodView]:
        if not self._rules.homecoming.surge:
            return []
        selection = self._view.selection
        spare = supply(look.picture, selection).least_spare
        return coming_home(look.picture, look.deployments, selection, self._rules.homecoming, spare)

    async def _answer(self, found: Plan, now: datetime) -> None:
        version = self._view.kueue.version
        for answer in await self._checks.answer(version, found.answers, now):
            workload = answer.workload
            logger.info(
                "Workload %s/%s: %s: %s",
                workload.namespace, workload.name, answer.state, answer.message,
            )  # fmt: skip
            self._means.metrics.bursting.admission_answers.labels(answer.state).inc()

    async def _nudge(self, picture: Picture, now: datetime) -> None:
        """Kueue looks again at what a topology kept out when a node changes, not when a plain pod
        leaves one (``pkg/controller/tas/resource_flavor.go``); an annotation is change enough."""
        steady = self._means.clock.steady()
        home = sorted(node.name for node in picture.home if self._view.selection.is_home(node))
        if not home or steady - self._nudged_at < NUDGE_SECONDS:
            return
        self._nudged_at = steady
        body = {"metadata": {"annotations": {names.ROOM_MADE_AT: now.isoformat()}}}
        try:
            await self._means.client.patch(paths.node(home[0]), body, kind=PatchKind.MERGE)
        except KubeError as fault:
            logger.warning("node %s can't be annotated: %s", home[0], fault)

    def _count(self, found: Plan) -> None:
        metrics = self._means.metrics.bursting
        metrics.evacuating_pods.set(len(found.leaving))
        metrics.held_workloads.set(sum(answer.state == "Pending" for answer in found.answers))
        metrics.surge_pods.set(
            sum(
                each.relocation.target - each.relocation.replicas
                for each in self._deployments.deployments()
                if each.relocation is not None
            )
        )
