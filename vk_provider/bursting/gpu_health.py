"""Which home nodes are unfit for training, or for anything: taints, from findings. Pure.

Most of what is wrong with a GPU does not matter to inference on that one GPU, and stops a training
job on sixty-four of them. So a sick node is tainted ``training-unfit`` and goes on serving; only
``drain`` and ``dead`` keep inference off as well. A taint comes at once and goes late, never more
than a part of the nodes is tainted, and what somebody else has set is never touched.

Fed by ``controllers.gpu_health`` with nodes and findings; feeds it the taints to write.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from vk_provider.bursting import names
from vk_provider.bursting.gpu_findings import SEVERITY, Finding
from vk_provider.bursting.picture import HomeNode

IGNORE_LABEL = names.PREFIX + "gpu-health-ignore"
"""``"true"`` on a node: a person looks after its health, nobody else."""
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """Never more than ``max_nodes_percent`` of the home nodes carry the taint, whoever set it.

    A taint goes, or becomes a lighter one, after ``release_after_seconds`` without a finding, all
    of them with the node's measurements at hand.
    """

    max_nodes_percent: float = 30.0
    release_after_seconds: float = 1800.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """One look at the monitoring system. ``measured`` are the nodes that are measured at all;
    ``is_complete`` is False if any query failed: then nothing is released."""

    findings: Sequence[Finding] = ()
    measured: frozenset[str] = frozenset()
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class HealthChange:
    """A taint to be set (``new``), or removed (None). ``mark`` is the annotation that says that it
    is ours; None removes it."""

    node: str
    uid: str
    old: str | None
    new: str | None
    mark: str | None
    why: str


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A node that should be tainted and is not, and why."""

    node: str
    uid: str
    verdict: str
    why: str


@dataclass(frozen=True, slots=True)
class HealthPlan:
    """What to write, what was held back, and since when each node has been better than its taint
    says (to be handed in again)."""

    changes: tuple[HealthChange, ...] = ()
    held_back: tuple[HeldBack, ...] = ()
    better_since: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Case:
    """One node, and what there is to know about it."""

    node: HomeNode
    taint: str | None
    mark: str | None
    worst: str | None
    found: tuple[Finding, ...]

    @property
    def is_foreign(self) -> bool:
        """A taint that we did not set, or that somebody changed since."""
        return self.taint is not None and self.taint != self.mark

    @property
    def is_ignored(self) -> bool:
        return self.node.labels.get(IGNORE_LABEL) == "true"

    @property
    def words(self) -> str:
        shown = [str(one) for one in self.found[:_MOST_NAMED]]
        more = len(self.found) - len(shown)
        return "; ".join([*shown, f"and {more} more"] if more > 0 else shown)


def plan(
    nodes: Sequence[HomeNode],
    evidence: Evidence,
    policy: HealthPolicy,
    better_since: Mapping[str, datetime],
    now: datetime,
) -> HealthPlan:
    """Compare every home node's taint with what was found on it."""
    cases = [_case(node, evidence.findings) for node in nodes]
    tainted = sum(case.taint is not None for case in cases)
    room = math.floor(len(cases) * policy.max_nodes_percent / 100 + 1e-9) - tainted
    changes: list[HealthChange] = []
    held_back: list[HeldBack] = []
    since: dict[str, datetime] = {}
    # The worst first, since there may not be room for all.
    for case in sorted(cases, key=lambda one: (-SEVERITY[one.worst], one.node.name)):
        if case.is_foreign or case.is_ignored:
            continue
        held = case.mark if case.mark is not None else case.taint
        if SEVERITY[case.worst] > SEVERITY[held]:
            if case.taint is None and room <= 0:
                held_back.append(_held_back(case, policy, tainted, len(cases)))
                continue
            room -= case.taint is None
            changes.append(_set(case, now))
        elif SEVERITY[case.worst] < SEVERITY[held] and _is_known(case, evidence):
            began = since[case.node.name] = better_since.get(case.node.name, now)
            if now - began >= timedelta(seconds=policy.release_after_seconds):
                changes.append(_lighten(case, policy, now))
                del since[case.node.name]
    return HealthPlan(tuple(changes), tuple(held_back), since)


def _is_known(case: _Case, evidence: Evidence) -> bool:
    """Whether no finding means that there is none."""
    return evidence.is_complete and case.node.name in evidence.measured


def _case(node: HomeNode, findings: Iterable[Finding]) -> _Case:
    mine = tuple(
        sorted(
            (one for one in findings if one.node == node.name),
            key=lambda one: (-SEVERITY[one.verdict], one.rule, one.detail),
        )
    )
    worst = mine[0].verdict if mine else None
    return _Case(node, node.gpu_health, marked(node.annotations), worst, mine)


def marked(annotations: Mapping[str, str]) -> str | None:
    """The value that we have set, by the mark that we left; None if there is none."""
    try:
        mark = json.loads(annotations.get(names.GPU_HEALTH_SET_BY, ""))
    except (ValueError, RecursionError):
        return None
    value = mark.get("value") if isinstance(mark, dict) else None
    return value if isinstance(value, str) and value in SEVERITY else None


def mark_of(value: str, rules: Iterable[str], now: datetime) -> str:
    """What the annotation says."""
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    content = {"by": "vk-provider", "value": value, "since": since, "rules": sorted(set(rules))}
    return json.dumps(content, separators=(",", ":"))


def _set(case: _Case, now: datetime) -> HealthChange:
    worst = case.found[0].verdict
    mark = mark_of(worst, (one.rule for one in case.found), now)
    return HealthChange(case.node.name, case.node.uid, case.taint, worst, mark, case.words)


def _lighten(case: _Case, policy: HealthPolicy, now: datetime) -> HealthChange:
    """A taint that somebody has lifted by hand stays lifted; then only the mark goes."""
    new = case.worst if case.taint is not None else None
    mark = None if new is None else mark_of(new, (one.rule for one in case.found), now)
    better = f"nothing worse was found for {policy.release_after_seconds / 60:g} min"
    why = f"{better}: {case.words}" if case.found else better
    return HealthChange(case.node.name, case.node.uid, case.taint, new, mark, why)


def _held_back(case: _Case, policy: HealthPolicy, tainted: int, total: int) -> HeldBack:
    limit = (
        f"{tainted} of {total} home nodes are tainted already, and maxNodesPercent is "
        f"{policy.max_nodes_percent:g}: look at the nodes, or raise it"
    )
    verdict = case.found[0].verdict
    return HeldBack(case.node.name, case.node.uid, verdict, f"{case.words}; not tainted: {limit}")
