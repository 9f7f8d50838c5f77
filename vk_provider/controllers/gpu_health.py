"""Taints home nodes by what Prometheus says of their GPUs and fabric, and takes taints back.

One round: ask every query at once, let :mod:`vk_provider.bursting.gpu_health` decide, write. A
query that fails keeps its silence from being taken for health.
Fed by Prometheus and ``controllers.cluster_view``; writes taints, one annotation, Events.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from vk_provider.bursting.gpu_findings import (
    SEVERITY,
    Finding,
    Sample,
    addresses_of,
    findings,
    observed,
    unreadable,
)
from vk_provider.bursting.gpu_health import Evidence, HealthChange, HealthPlan, plan
from vk_provider.bursting.names import GPU_HEALTH_SET_BY, GPU_HEALTH_TAINT
from vk_provider.bursting.picture import HomeNode
from vk_provider.controllers.cluster_view import ClusterView
from vk_provider.controllers.means import ControllerMeans
from vk_provider.controllers.prometheus_client import PrometheusClient
from vk_provider.faults import ConflictError, KubeError, KubeNotFoundError, UnavailableError
from vk_provider.kube import paths
from vk_provider.kube.client import PatchKind
from vk_provider.kube.events import NodeRef
from vk_provider.node.taints import edit, taints_patch
from vk_provider.settings_bursting_gpu_health import GpuHealthSettings

logger = logging.getLogger(__name__)

_PRESENCE = ""
_TRIES = 3
TAINTED, RELEASED, HELD_BACK = "GpuHealthTainted", "GpuHealthReleased", "GpuHealthHeldBack"


class GpuHealthController:
    """One cluster's health taints."""

    def __init__(
        self,
        means: ControllerMeans,
        view: ClusterView,
        settings: GpuHealthSettings,
        prometheus: PrometheusClient,
    ) -> None:
        self._means = means
        self._view = view
        self._settings = settings
        self._prometheus = prometheus
        self._better_since: Mapping[str, datetime] = {}
        self._told: dict[str, str] = {}
        self._rehearsed: dict[str, str] = {}
        self._fault = ""

    async def run(self) -> None:
        """Look again and again until cancelled."""
        await self._view.wait()
        while True:
            if self._means.may_act():
                await self._look()
            await asyncio.sleep(self._settings.every * (0.9 + 0.2 * self._means.jitter()))

    async def _look(self) -> None:
        nodes = self._home()
        evidence = await self._evidence(nodes)
        found = plan(
            nodes,
            evidence,
            self._settings.policy,
            self._better_since,
            self._means.clock.now(),
        )
        self._better_since = found.better_since
        self._report(nodes, found, evidence)
        for change in found.changes:
            if not self._means.may_act():
                return
            await self._carry_out(change)

    def _home(self) -> list[HomeNode]:
        """Home nodes with GPUs; one that lost them all was one, if it carries our taint."""
        selection = self._view.selection
        return [
            node
            for node in self._view.home_nodes()
            if selection.is_home(node) and (node.gpus > 0 or node.gpu_health is not None)
        ]

    async def _evidence(self, nodes: Sequence[HomeNode]) -> Evidence:
        queries = {_PRESENCE: self._settings.presence}
        queries |= {rule.name: rule.query for rule in self._settings.rules}
        texts = list(queries.values())
        results = await asyncio.gather(*(self._ask(text) for text in texts))
        answers = dict(zip(queries, results, strict=True))
        faults = {name: words for name, words in answers.items() if isinstance(words, str)}
        self._complain(faults)
        known = addresses_of(nodes)
        said: dict[str, list[Sample]] = {
            name: found for name, found in answers.items() if not isinstance(found, str)
        }
        found: list[Finding] = []
        measured = observed(said.get(_PRESENCE, ()), known)
        for rule in self._settings.rules:
            samples = said.get(rule.name, ())
            found += findings(rule, samples, known)
            measured -= unreadable(rule, samples, known)
        return Evidence(found, measured, is_complete=not faults)

    async def _ask(self, query: str) -> list[Sample] | str:
        """The samples, or in words why there are none to be had."""
        try:
            found = await self._prometheus.query(query)
        except UnavailableError as fault:
            return str(fault)
        return [Sample(one.labels, one.value) for one in found]

    def _complain(self, faults: Mapping[str, str]) -> None:
        """Once per set of failing queries."""
        words = "; ".join(sorted(set(faults.values())))
        if words and words != self._fault:
            logger.warning("GPU health: Prometheus gave no answer, no taint goes: %s", words)
        self._fault = words

    def _report(self, nodes: Sequence[HomeNode], found: HealthPlan, evidence: Evidence) -> None:
        metrics = self._means.metrics.bursting
        metrics.gpu_health_up.labels("prometheus").set(evidence.is_complete)
        metrics.gpu_health_held_back.set(len(found.held_back))
        counted = Counter(node.gpu_health for node in nodes)
        for verdict in SEVERITY:
            if verdict is not None:
                metrics.gpu_health_nodes.labels(verdict).set(counted[verdict])
        for one in found.held_back:
            if self._told.get(one.node) != one.verdict:
                self._told[one.node] = one.verdict
                self._tell(one.node, one.uid, "Warning", HELD_BACK, f"{one.verdict}: {one.why}")
        _keep(self._told, (one.node for one in found.held_back))
        _keep(self._rehearsed, (one.node for one in found.changes))

    async def _carry_out(self, change: HealthChange) -> None:
        words = f"{change.old or 'no taint'} -> {change.new or 'no taint'}: {change.why}"
        if self._settings.dry_run:
            self._rehearse(change, words)
            return
        try:
            await self._write(change)
        except KubeError as fault:
            logger.warning("node %s: gpu-health %s: not written: %s", change.node, words, fault)
            return
        self._means.metrics.bursting.gpu_health_changes.labels(change.new or "none").inc()
        if change.new == change.old:
            return  # only our mark went: a person had lifted the taint before
        kind, reason = ("Warning", TAINTED) if change.new else ("Normal", RELEASED)
        logger.info("node %s: gpu-health %s", change.node, words)
        self._tell(change.node, change.uid, kind, reason, words)

    def _rehearse(self, change: HealthChange, words: str) -> None:
        """What would be done, once per kind of change."""
        shown = f"{change.old}->{change.new}"
        if self._rehearsed.get(change.node) != shown:
            self._rehearsed[change.node] = shown
            logger.info("dry run: node %s: gpu-health %s", change.node, words)
            self._tell(change.node, change.uid, "Normal", TAINTED, f"dry run: {words}")

    async def _write(self, change: HealthChange) -> None:
        """Read, edit, write conditionally: the list belongs to many."""
        for attempt in range(_TRIES):
            node = await self._means.client.get(paths.node(change.node))
            if node["metadata"]["uid"] != change.uid:
                raise KubeNotFoundError(f"node {change.node} is another one now")
            current = (node.get("spec") or {}).get("taints") or []
            if _value(current) != change.old:
                return  # somebody was faster: the next look decides anew
            wanted = [_taint(change.new)] if change.new is not None else []
            edited = edit(current, wanted, frozenset({GPU_HEALTH_TAINT}))
            patch = taints_patch(node, current if edited is None else edited)
            patch["metadata"]["annotations"] = {GPU_HEALTH_SET_BY: change.mark}
            try:
                await self._means.client.patch(paths.node(change.node), patch, kind=PatchKind.MERGE)
            except ConflictError:
                if attempt == _TRIES - 1:
                    raise
            else:
                return

    def _tell(self, node: str, uid: str, kind: str, reason: str, message: str) -> None:
        self._means.events.emit(NodeRef(node, uid), kind, reason, message)


def _keep(told: dict[str, str], nodes: Iterable[str]) -> None:
    """Forget of whom there is nothing to tell any more: next time it is news again."""
    for node in told.keys() - set(nodes):
        del told[node]


def _taint(value: str) -> dict[str, str]:
    return {"key": GPU_HEALTH_TAINT, "value": value, "effect": "NoSchedule"}


def _value(taints: Sequence[Mapping[str, str]]) -> str | None:
    return next((one.get("value") for one in taints if one.get("key") == GPU_HEALTH_TAINT), None)
