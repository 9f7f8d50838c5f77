"""What in a cluster's Kueue keeps training from pushing inference out, and what to do. Pure.

Each check is one trap that was met on a real Kueue: nothing errs, and nothing happens either.
Fed by ``doctor.kueue`` with the objects of a cluster; feeds its report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from vk_provider.bursting.checkup import Advice, Level
from vk_provider.bursting.names import PROVIDER_TAINT
from vk_provider.bursting.picture import (
    HomeNode,
    Picture,
    Selection,
    VirtualNode,
    matches,
    may_enter,
)
from vk_provider.bursting.quota import Node, QuotaRules, plan, why_not
from vk_provider.bursting.quota_objects import FlavorView, QueueView
from vk_provider.pods.types import Json
from vk_provider.taints import Taint

_PROVIDER = Taint(PROVIDER_TAINT, "vk-provider")
_INFERENCE_FRAMEWORKS = frozenset(
    {"pod", "deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"}
)
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A scheduling.k8s.io PriorityClass."""

    name: str
    value: int
    preempts: bool = True


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """One pod set of a Kueue Workload: what its pods say to the scheduler."""

    workload: str
    priority_class: str = ""
    scheduler: str = ""
    wants_topology: bool = False


@dataclass(frozen=True, slots=True)
class CheckState:
    """An AdmissionCheck, and whether its controller says that it is there."""

    name: str
    controller: str = ""
    is_active: bool = True


@dataclass(frozen=True, slots=True)
class KueueFacts:
    """Everything that the checks look at. ``version`` is the served API version, empty without
    Kueue; ``manager`` is its configuration, None where it could not be read."""

    version: str
    flavors: Sequence[FlavorView] = ()
    queues: Sequence[QueueView] = ()
    training: Sequence[TrainingSet] = ()
    classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    checks: Sequence[CheckState] = ()
    picture: Picture = field(default_factory=Picture)
    nodes: Sequence[HomeNode] = ()
    inference_schedulers: frozenset[str] = frozenset()
    manager: Json | None = None
    makes_room: bool = False
    """Whether our evacuation makes room for jobs of topology-aware queues."""


def examine(facts: KueueFacts, selection: Selection, now: datetime) -> list[Advice]:
    """Everything that was looked at, good and bad."""
    if not facts.version:
        return [
            Advice(
                Level.ERROR,
                "Kueue",
                "its API group kueue.x-k8s.io is not served here",
                "install Kueue, or leave training to the scheduler's priorities alone",
            )
        ]
    found = [Advice(Level.OK, "Kueue", f"served as {facts.version}")]
    queues = [
        queue for queue in facts.queues if not selection.queues or queue.name in selection.queues
    ]
    used = _used_flavors(queues, facts.flavors, selection)
    found += _queues(queues, selection)
    found += _checks(queues, facts.checks)
    found += _topology(used, facts.training, facts.makes_room)
    found += _labels(used, facts)
    found += _quotas(queues, facts, selection, now)
    found += _classes(facts, selection)
    found += _training(facts, selection)
    found += _schedulers(facts)
    found += _manager(facts.manager)
    return found


def _used_flavors(
    queues: Sequence[QueueView], flavors: Sequence[FlavorView], selection: Selection
) -> list[FlavorView]:
    names = {
        line.flavor for queue in queues for line in queue.lines
        if line.resource == selection.resource
    }  # fmt: skip
    return [flavor for flavor in flavors if flavor.name in names]


def _queues(queues: Sequence[QueueView], selection: Selection) -> Iterator[Advice]:
    missing = selection.queues - {queue.name for queue in queues}
    for name in sorted(missing):
        yield Advice(
            Level.ERROR,
            f"ClusterQueue {name}",
            "is named in training.clusterQueues and does not exist",
            "create it, or correct the name",
        )
    for queue in queues:
        subject = f"ClusterQueue {queue.name}"
        if not queue.is_active:
            yield Advice(
                Level.ERROR,
                subject,
                f"is inactive, so nothing in it is ever admitted: {queue.inactive_why}",
                "see its status.conditions",
            )
        if not any(line.resource == selection.resource for line in queue.lines):
            yield Advice(
                Level.WARNING,
                subject,
                f"covers no {selection.resource}: GPUs of its jobs are not counted",
                f"add {selection.resource} to its coveredResources",
            )


def _checks(queues: Sequence[QueueView], checks: Sequence[CheckState]) -> Iterator[Advice]:
    states = {check.name: check for check in checks}
    for queue in queues:
        for name in queue.checks:
            state = states.get(name)
            if state is None or not state.is_active:
                what = "is not Active" if state else "does not exist"
                yield Advice(
                    Level.ERROR,
                    f"AdmissionCheck {name}",
                    f"{what}: ClusterQueue {queue.name} admits nothing without it",
                    "start the controller that answers for it, or take it off the queue",
                )


def _topology(
    used: Sequence[FlavorView], training: Sequence[TrainingSet], makes_room: bool
) -> Iterator[Advice]:
    """Topology-Aware Scheduling counts every pod, whatever its priority."""
    aware = [flavor for flavor in used if flavor.topology]
    for flavor in aware:
        yield _blocked(flavor, makes_room)
    asking = sorted({one.workload for one in training if one.wants_topology})
    if asking and not aware:
        yield Advice(
            Level.WARNING,
            f"Workload {_named(asking)}",
            "asks for a topology that no flavor of its queue has",
            "remove the podset-*-topology annotations, or they wait for ever",
        )
    if used and not aware:
        yield Advice(
            Level.OK,
            "Topology-Aware Scheduling",
            "no flavor of the training queues has a topology: quota alone admits",
        )


def _blocked(flavor: FlavorView, makes_room: bool) -> Advice:
    """A flavor whose jobs wait while inference holds the GPUs, whatever anybody's priority."""
    subject = f"ResourceFlavor {flavor.name}"
    what = (
        f'has topologyName "{flavor.topology}": with Topology-Aware Scheduling Kueue takes the '
        "GPUs of inference pods off what is free, whatever their priority, so a training job "
        "is never admitted while inference holds them and the scheduler never gets to preempt"
    )
    if makes_room:
        return Advice(Level.NOTE, subject, f"{what}; admissionCheck.topology makes room for it")
    remedy = (
        "take topologyName off the flavor that training shares with inference, or set "
        "admissionCheck.topology: true, which moves inference first"
    )
    return Advice(Level.ERROR, subject, what, remedy)


def _labels(used: Sequence[FlavorView], facts: KueueFacts) -> Iterator[Advice]:
    """Training belongs on home nodes, and must need to preempt for it."""
    for flavor in used:
        subject = f"ResourceFlavor {flavor.name}"
        virtual = [node for node in facts.picture.virtual if _selects(flavor, node)]
        if not flavor.node_labels:
            yield Advice(
                Level.ERROR,
                subject,
                "has no nodeLabels: its jobs may go to any node, the virtual ones included",
                "give it labels that only home nodes carry, such as pool: home",
            )
        elif virtual and may_enter(flavor.tolerations, [_PROVIDER]):
            yield from _outside(flavor, virtual)
        elif virtual:
            yield Advice(
                Level.ERROR,
                subject,
                f"selects the virtual node {virtual[0].name} too, whose taint its pods do not "
                "tolerate: they would wait for room that they can't use",
                "use nodeLabels that no virtual node carries",
            )
        elif not any(_selects(flavor, node) for node in facts.nodes):
            yield Advice(
                Level.ERROR,
                subject,
                f"selects no node: {dict(flavor.node_labels)}",
                "label the home nodes, or correct nodeLabels",
            )
        elif may_enter(flavor.tolerations, [_PROVIDER]):
            yield Advice(
                Level.WARNING,
                subject,
                f"tolerates {PROVIDER_TAINT}: what may go outside never needs to preempt",
                "remove the toleration from a flavor of home nodes",
            )
        else:
            yield Advice(Level.OK, subject, "stands for home nodes alone")


def _outside(flavor: FlavorView, virtual: Sequence[VirtualNode]) -> Iterator[Advice]:
    """A flavor that is meant to be outside."""
    shut = [node.name for node in virtual if why_not(node, flavor) is not None]
    if shut:
        yield Advice(
            Level.WARNING,
            f"ResourceFlavor {flavor.name}",
            f"stands for virtual nodes whose gate or door is shut now ({_named(shut)}): what is "
            "admitted to it waits with its quota held",
            "let the quota bridge keep its quota, or set it by what the node offers",
        )


def _selects(flavor: FlavorView, node: HomeNode | VirtualNode) -> bool:
    return matches(node.labels, flavor.node_labels)


def _quotas(
    queues: Sequence[QueueView], facts: KueueFacts, selection: Selection, now: datetime
) -> Iterator[Advice]:
    """Quotas against what the nodes can give: exactly what the bridge would write."""
    rules = QuotaRules(
        resource=selection.resource,
        queues=frozenset(queue.name for queue in queues),
        hold_down_seconds=0,
        shrink_step=2**31,
        below_reserved=True,
    )
    nodes: list[Node] = [*facts.nodes, *facts.picture.virtual]
    found = plan(nodes, facts.flavors, facts.queues, rules, {}, now)
    for change in found.changes:
        line = change.line
        is_too_large = change.amount < line.nominal
        what = (
            "admitted jobs would stay Pending, with inference displaced for nothing"
            if is_too_large
            else "GPUs would stay idle"
        )
        yield Advice(
            Level.ERROR if is_too_large else Level.WARNING,
            f"ClusterQueue {line.queue}",
            f"nominalQuota of {line.resource} in flavor {line.flavor} is {line.nominal}, the "
            f"nodes can give {change.amount}: {what} ({change.why})",
            "correct the number, or enable the quotaBridge",
        )
    for refusal in found.refusals:
        yield Advice(
            Level.NOTE,
            f"ClusterQueue {refusal.queue}",
            f"its quota in flavor {refusal.flavor} can't be compared: {refusal.why}",
        )
    if queues and not found.changes and not found.refusals:
        yield Advice(Level.OK, "Quotas", "are what the nodes can give")


def _classes(facts: KueueFacts, selection: Selection) -> Iterator[Advice]:
    """The scheduler preempts by the priority of pods, and by nothing else."""
    highest = _highest_inference(facts, selection)
    for name in sorted(selection.priority_classes):
        subject, known = f"PriorityClass {name}", facts.classes.get(name)
        if known is None:
            yield Advice(
                Level.ERROR,
                subject,
                "does not exist (a WorkloadPriorityClass only orders Kueue's own queue)",
                "create it with a value above that of inference, or correct "
                "training.priorityClasses",
            )
        elif not known.preempts:
            yield Advice(
                Level.ERROR,
                subject,
                "has preemptionPolicy: Never, so training waits behind inference",
                "create it anew with PreemptLowerPriority (the field can't be changed)",
            )
        elif highest is not None and known.value <= highest[0]:
            yield Advice(
                Level.ERROR,
                subject,
                f"has value {known.value}, and inference pod {highest[1]} has {highest[0]}: "
                "nothing is ever preempted",
                "give inference a class of a lower value",
            )
        else:
            yield Advice(Level.OK, subject, f"value {known.value}, preempts")


def _highest_inference(facts: KueueFacts, selection: Selection) -> tuple[int, str] | None:
    pods = [pod for pod in facts.picture.pods if selection.is_inference(pod) and not pod.is_over]
    found = [(pod.priority, f"{pod.namespace}/{pod.name}") for pod in pods]
    return max(found, default=None)


def _training(facts: KueueFacts, selection: Selection) -> Iterator[Advice]:
    """Workloads whose pods the scheduler takes for unimportant."""
    bare = sorted({one.workload for one in facts.training if not one.priority_class})
    if bare:
        yield Advice(
            Level.ERROR,
            f"Workload {_named(bare)}",
            "has no priorityClassName on its pod template: Kueue admits it, its pods have priority "
            "0 and stay Pending (a WorkloadPriorityClass or the label "
            "kueue.x-k8s.io/priority-class does not reach the pods)",
            f"set spec.template.spec.priorityClassName: {_any(selection.priority_classes)}",
        )
    other = sorted(
        {
            one.workload
            for one in facts.training
            if one.priority_class and one.priority_class not in selection.priority_classes
        }
    )
    if other:
        yield Advice(
            Level.NOTE,
            f"Workload {_named(other)}",
            "has a priority class that is not listed in training.priorityClasses: the gate does "
            "not count it as training",
        )


def _schedulers(facts: KueueFacts) -> Iterator[Advice]:
    """A scheduler preempts only what it has placed itself."""
    theirs = {one.scheduler or "default-scheduler" for one in facts.training}
    ours = facts.inference_schedulers
    if theirs and ours and not theirs <= ours:
        yield Advice(
            Level.ERROR,
            "schedulerName",
            f"training is placed by {_named(sorted(theirs))}, inference by "
            f"{_named(sorted(ours))}: one can't preempt for the other",
            "use one scheduler for both",
        )


def _manager(manager: Json | None) -> Iterator[Advice]:
    """Kueue's own configuration."""
    if manager is None:
        yield Advice(
            Level.NOTE, "Kueue's configuration", "could not be read, so it was not looked at"
        )
        return
    if not manager.get("waitForPodsReady"):
        yield Advice(
            Level.WARNING,
            "waitForPodsReady",
            "is not set: a job whose pods find no place keeps its quota for ever",
            "set waitForPodsReady with a timeout and a requeuingStrategy",
        )
    frameworks = (manager.get("integrations") or {}).get("frameworks") or ()
    managed = sorted(_INFERENCE_FRAMEWORKS & set(frameworks))
    if managed:
        yield Advice(
            Level.NOTE,
            "integrations.frameworks",
            f"has {_named(managed)}: inference with a queue label is gated by Kueue, is never "
            "Unschedulable and so never opens the gate",
            "put no kueue.x-k8s.io/queue-name on inference that bursts",
        )
    if manager.get("manageJobsWithoutQueueName"):
        yield Advice(
            Level.WARNING,
            "manageJobsWithoutQueueName",
            "is true: Kueue suspends workloads that never asked for a queue",
            "set it to false where inference runs beside Kueue",
        )


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _any(names: frozenset[str]) -> str:
    return min(names, default="CLASS")
