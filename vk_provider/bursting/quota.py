"""How many GPUs training queues should have: those of the nodes that can really run it. Pure.

Kueue compares requests with numbers that somebody wrote down once. Nodes come and go; a number that
is too large admits jobs whose pods stay Pending (and displaces inference for nothing), one that is
too small leaves GPUs idle. Quotas grow at once and shrink slowly, since a node that restarts is no
reason to touch anything, never below what is reserved, and a queue that somebody else automates is
left alone.

Fed by ``controllers.quota_bridge`` with nodes, flavors and queues; feeds it JSON patches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from vk_provider.bursting.picture import HomeNode, VirtualNode, matches, may_enter
from vk_provider.bursting.quota_objects import FlavorView, QueueView, QuotaLine
from vk_provider.pods.types import Json

Node = HomeNode | VirtualNode
Key = tuple[str, str]
"""A queue and a flavor in it."""


@dataclass(frozen=True, slots=True)
class QuotaRules:
    """What is managed, and how fast. Durations are seconds, amounts are of ``resource``.

    ``queues`` empty means all. ``per_pod`` is what one training pod takes: a node with less
    contributes nothing, and the rest of one is not counted. ``percent`` and ``reserve`` are taken
    off each flavor. ``shares`` weigh queues that share a flavor (default: their present quotas).
    """

    resource: str = "nvidia.com/gpu"
    queues: frozenset[str] = frozenset()
    per_pod: int = 1
    percent: float = 100.0
    reserve: int = 0
    shares: Mapping[str, float] = field(default_factory=dict)
    grow_step: int | None = None
    shrink_step: int = 8
    hold_down_seconds: float = 600.0
    shrink_every_seconds: float = 300.0
    below_reserved: bool = False


@dataclass(frozen=True, slots=True)
class Patience:
    """What is remembered of one quota: since when it is too large, and when it shrank last."""

    too_large_since: datetime | None = None
    shrank_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """One number to be written. ``why`` is for the Event and the log."""

    line: QuotaLine
    amount: int
    why: str

    def patch(self) -> list[Json]:
        """A JSON patch that fails if anything moved since it was read."""
        line = self.line
        flavor = f"/spec/resourceGroups/{line.group}/flavors/{line.position}"
        resource = f"{flavor}/resources/{line.index}"
        return [
            {"op": "test", "path": f"{flavor}/name", "value": line.flavor},
            {"op": "test", "path": f"{resource}/name", "value": line.resource},
            {"op": "test", "path": f"{resource}/nominalQuota", "value": line.raw},
            {"op": "replace", "path": f"{resource}/nominalQuota", "value": str(self.amount)},
        ]


@dataclass(frozen=True, slots=True)
class QuotaRefusal:
    """A quota that is left alone although it was asked for, and what to do about it."""

    queue: str
    flavor: str
    why: str


@dataclass(frozen=True, slots=True)
class QuotaPlan:
    """What is to be done now, and what is to be remembered until the next look."""

    changes: tuple[QuotaChange, ...] = ()
    refusals: tuple[QuotaRefusal, ...] = ()
    memory: Mapping[Key, Patience] = field(default_factory=dict)
    capacity: Mapping[str, int] = field(default_factory=dict)
    """What each flavor's nodes can give, for the metrics."""


def plan(
    nodes: Sequence[Node],
    flavors: Sequence[FlavorView],
    queues: Sequence[QueueView],
    rules: QuotaRules,
    memory: Mapping[Key, Patience],
    now: datetime,
) -> QuotaPlan:
    """Compare every managed quota with what its flavor's nodes can give."""
    by_name = {flavor.name: flavor for flavor in flavors}
    lines = [line for queue in queues for line in queue.lines if line.resource == rules.resource]
    used = [flavor for flavor in flavors if any(line.flavor == flavor.name for line in lines)]
    managed, fixed, refusals = _sorted_out(queues, by_name, _overlaps(nodes, used), rules)
    capacity = {
        flavor.name: _capacity(nodes, flavor, rules) for flavor in flavors if flavor.node_labels
    }
    targets = _targets(managed, fixed, capacity, rules)
    changes: list[QuotaChange] = []
    remembered: dict[Key, Patience] = {}
    for line in managed:
        key = (line.queue, line.flavor)
        known = memory.get(key, Patience())
        remembered[key], amount = _step(line, targets[key], rules, known, now)
        if amount == line.nominal:
            continue
        if line.lending_limit is not None and line.lending_limit > amount:
            refusals.append(QuotaRefusal(*key, _lends_more(line.lending_limit, amount)))
        else:
            words = _why(nodes, by_name[line.flavor], rules, targets[key])
            changes.append(QuotaChange(line, amount, words))
    return QuotaPlan(tuple(changes), tuple(refusals), remembered, capacity)


def _sorted_out(
    queues: Sequence[QueueView],
    flavors: Mapping[str, FlavorView],
    overlaps: Mapping[str, str],
    rules: QuotaRules,
) -> tuple[list[QuotaLine], list[QuotaLine], list[QuotaRefusal]]:
    """Numbers that are ours to write, those that are not, and why not where we were asked to."""
    managed: list[QuotaLine] = []
    fixed: list[QuotaLine] = []
    refusals: list[QuotaRefusal] = []
    ours = [(queue, line) for queue in queues for line in queue.lines]
    for queue, line in ours:
        if line.resource != rules.resource:
            continue
        if rules.queues and queue.name not in rules.queues:
            fixed.append(line)
            continue
        why = _obstacle(queue, flavors.get(line.flavor), overlaps.get(line.flavor))
        if why is None:
            managed.append(line)
        else:
            fixed.append(line)
            refusals.append(QuotaRefusal(queue.name, line.flavor, why))
    return managed, fixed, refusals


def _lends_more(limit: int, amount: int) -> str:
    return (
        f"its lendingLimit {limit} is larger than {amount}, which Kueue refuses: "
        "lower the lendingLimit"
    )


def _obstacle(queue: QueueView, flavor: FlavorView | None, overlap: str | None) -> str | None:
    """Why a quota is none of ours to write."""
    if queue.orchestrator is not None:
        return (
            f"its quota is managed by {queue.orchestrator}: remove the queue from "
            "quotaBridge.clusterQueues, or the orchestrator"
        )
    if queue.stop_policy not in ("", "None"):
        return f"its stopPolicy is {queue.stop_policy}: somebody stopped it by hand"
    if flavor is None:
        return "there is no ResourceFlavor of that name"
    if not flavor.node_labels:
        return "the flavor has no nodeLabels, so it would count every node: give it some"
    return overlap


def _overlaps(nodes: Sequence[Node], flavors: Sequence[FlavorView]) -> dict[str, str]:
    """Flavors that count the same node, each with a sentence about it."""
    found: dict[str, str] = {}
    labelled = [flavor for flavor in flavors if flavor.node_labels]
    for node in nodes:
        both = [one.name for one in labelled if matches(node.labels, one.node_labels)]
        for name in both if len(both) > 1 else ():
            others = ", ".join(other for other in both if other != name)
            found[name] = (
                f"node {node.name} belongs to flavor {others} too and would be counted twice: "
                "make their nodeLabels exclude each other"
            )
    return found


def why_not(node: Node, flavor: FlavorView) -> str | None:
    """Why a node that carries the flavor's labels can run none of its pods; None if it can."""
    if not node.is_ready:
        return "is not Ready"
    if isinstance(node, HomeNode):
        if node.is_cordoned:
            return "is cordoned"
        if not node.is_usable and node.gpu_health is not None:
            return f"has gpu-health={node.gpu_health}"
    blocking = [one for one in node.taints if not may_enter(flavor.tolerations, [one])]
    if blocking:
        taint = blocking[0]
        shown = f"{taint.key}={taint.value}" if taint.value else taint.key
        return f"has the taint {shown}"
    return None


def _gives(node: Node, flavor: FlavorView, per_pod: int) -> int:
    if not matches(node.labels, flavor.node_labels) or why_not(node, flavor) is not None:
        return 0
    return node.gpus // per_pod * per_pod


def _capacity(nodes: Iterable[Node], flavor: FlavorView, rules: QuotaRules) -> int:
    total = sum(_gives(node, flavor, rules.per_pod) for node in nodes)
    return max(0, math.floor(total * rules.percent / 100 + 1e-9) - rules.reserve)


def _targets(
    managed: Sequence[QuotaLine],
    fixed: Sequence[QuotaLine],
    capacity: Mapping[str, int],
    rules: QuotaRules,
) -> dict[Key, int]:
    """Each quota's share of its flavor; what is not ours to write is taken off first."""
    targets: dict[Key, int] = {}
    for flavor in dict.fromkeys(line.flavor for line in managed):
        lines = [line for line in managed if line.flavor == flavor]
        taken = sum(line.nominal for line in fixed if line.flavor == flavor)
        room = max(0, capacity[flavor] - taken)
        weights = [rules.shares.get(line.queue, float(line.nominal)) for line in lines]
        # A queue may grow only into what no other holds: those that hold too much shrink later.
        idle = max(0, room - sum(line.nominal for line in lines))
        for line, share in zip(lines, _split(room, weights), strict=True):
            target = min(share, line.nominal + idle)
            idle -= max(0, target - line.nominal)
            targets[line.queue, flavor] = target
    return targets


def _split(total: int, weights: Sequence[float]) -> list[int]:
    """Whole parts by weight that add up to the total: the largest remainders get one more."""
    whole = sum(weights)
    wanted = [total * (one / whole if whole else 1 / len(weights)) for one in weights]
    parts = [math.floor(one + 1e-9) for one in wanted]
    by_remainder = sorted(range(len(parts)), key=lambda at: parts[at] - wanted[at])
    for at in by_remainder[: total - sum(parts)]:
        parts[at] += 1
    return parts


def _step(
    line: QuotaLine, target: int, rules: QuotaRules, patience: Patience, now: datetime
) -> tuple[Patience, int]:
    """The next amount: up at once, down late, in steps, and not below what is reserved."""
    if target >= line.nominal:
        step = target if rules.grow_step is None else line.nominal + rules.grow_step
        return replace(patience, too_large_since=None), min(target, step)
    since = patience.too_large_since or now
    waiting = replace(patience, too_large_since=since)
    if now - since < timedelta(seconds=rules.hold_down_seconds):
        return waiting, line.nominal
    pause = timedelta(seconds=rules.shrink_every_seconds)
    if patience.shrank_at is not None and now - patience.shrank_at < pause:
        return waiting, line.nominal
    floor = 0 if rules.below_reserved else min(line.reserved, line.nominal)
    amount = max(target, line.nominal - rules.shrink_step, floor)
    if amount == line.nominal:
        return waiting, amount
    return Patience(since, now), amount


def _why(nodes: Sequence[Node], flavor: FlavorView, rules: QuotaRules, target: int) -> str:
    mine = [node for node in nodes if matches(node.labels, flavor.node_labels)]
    good = sum(_gives(node, flavor, rules.per_pod) > 0 for node in mine)
    sick = [f"{node.name} {why}" for node in mine if (why := why_not(node, flavor)) is not None]
    words = f"{good} of {len(mine)} nodes of flavor {flavor.name} can run it, {target} are its part"
    return f"{words}; {', '.join(sick[:_MOST_NAMED])}" if sick else words


_MOST_NAMED = 5
