"""The cluster as the bursting side sees it: small values made of API objects. Pure.

Fed by ``controllers.cluster_view`` with objects as they came from watches; feeds every decision in
``bursting``. A view keeps what decisions need and nothing else, since all pods of a cluster are
held at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from vk_provider.bursting import names
from vk_provider.taints import REPELLING, Taint, Toleration


def may_enter(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> bool:
    """Whether none of these taints keeps the pod off."""
    held = tuple(tolerations)
    return all(
        taint.effect not in REPELLING or any(one.covers(taint) for one in held) for taint in taints
    )


@dataclass(frozen=True, slots=True)
class HomeNode:
    """A real node with GPUs. ``gpus`` is what it has to give, whole and allocatable.

    ``gpu_health`` is the value of our health taint. ``is_usable`` is Ready, not cordoned, has GPUs
    and is neither being drained nor dead; whether a pod tolerates its other taints is the pod's.
    """

    name: str
    uid: str = ""
    gpus: int = 0
    is_ready: bool = True
    is_cordoned: bool = False
    gpu_health: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_usable(self) -> bool:
        """Whether inference could be put here, as far as the node itself goes."""
        broken = self.gpu_health in (names.DRAIN, names.DEAD)
        return self.is_ready and not self.is_cordoned and not broken and self.gpus > 0

    @property
    def is_fit_for_training(self) -> bool:
        """Whether training could be put here: usable, and nothing said about its health."""
        return self.is_usable and self.gpu_health is None


@dataclass(frozen=True, slots=True)
class VirtualNode:
    """A node of ours. ``gate`` and ``unavailable`` are the values of its taints, None if absent.

    ``is_gated`` is whether its gate is ours to move. ``usd_per_hour`` is what all its instances
    cost, as it says itself; None where nothing is known. ``gate_state``, ``heartbeat`` and
    ``gate_override`` are the annotations as they stand.
    """

    name: str
    uid: str = ""
    gpus: int = 0
    is_ready: bool = True
    is_gated: bool = False
    gate: str | None = None
    unavailable: str | None = None
    usd_per_hour: float | None = None
    running: int = 0
    gate_state: str | None = None
    gate_override: str | None = None
    heartbeat: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller of a pod."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PodView:
    """What is known of one pod. ``gpus`` is what the scheduler counts for it, rounded up.

    ``node`` is empty while it has none. ``unschedulable_since`` is when the scheduler first said
    so and went on saying it. ``evicted_at`` is when its deletion was asked for. A pod that Kueue or
    anybody gates is never unschedulable.
    """

    uid: str
    namespace: str
    name: str
    node: str = ""
    gpus: int = 0
    phase: str = "Pending"
    is_ready: bool = False
    ready_since: datetime | None = None
    unready_since: datetime | None = None
    """Since when it is not Ready, as far as somebody says so."""
    created_at: datetime | None = None
    scheduled_at: datetime | None = None
    unschedulable_since: datetime | None = None
    unschedulable_why: str = ""
    evicted_at: datetime | None = None
    owner: Owner | None = None
    priority: int = 0
    priority_class: str = ""
    deletion_cost: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()

    @property
    def is_terminating(self) -> bool:
        """Whether its deletion was asked for; it holds its GPUs until it is gone."""
        return self.evicted_at is not None

    @property
    def is_over(self) -> bool:
        """Whether it ended; an ended pod holds no GPU."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def born(self) -> float:
        """When it was created, in seconds since 1970; 0 where nobody says so."""
        return self.created_at.timestamp() if self.created_at is not None else 0.0

    @property
    def is_unschedulable(self) -> bool:
        """Whether the scheduler found no place for it."""
        return self.unschedulable_since is not None


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """A Kueue Workload. ``gpus`` is what all its pods ask for together.

    ``pod_gpus`` are the GPUs of one pod of each pod set. ``cluster_queue`` is empty until quota is
    reserved. ``wants_topology`` is whether a pod set asks for a topology.
    """

    uid: str
    namespace: str
    name: str
    queue: str = ""
    cluster_queue: str = ""
    gpus: int = 0
    pod_gpus: tuple[int, ...] = ()
    priority: int = 0
    priority_classes: frozenset[str] = frozenset()
    is_active: bool = True
    is_admitted: bool = False
    has_quota: bool = False
    is_finished: bool = False
    is_inference: bool = False
    wants_topology: bool = False
    created_at: datetime | None = None
    owner: Owner | None = None
    checks: Mapping[str, str] = field(default_factory=dict)
    """State of each AdmissionCheck by its name: Pending, Ready, Retry, Rejected."""
    checks_since: Mapping[str, datetime] = field(default_factory=dict)
    """Since when each of them is in its state."""
    pod_counts: tuple[int, ...] = ()
    """How many pods each pod set has, as ``pod_gpus`` has their GPUs."""
    pending_why: str = ""
    """Why it has no quota, in Kueue's words."""

    @property
    def is_waiting(self) -> bool:
        """Whether it wants to run and does not yet."""
        return self.is_active and not self.is_finished and not self.is_admitted


@dataclass(frozen=True, slots=True)
class Picture:
    """One look at the cluster. ``workloads`` is None where nothing is known of Kueue's."""

    home: Sequence[HomeNode] = ()
    virtual: Sequence[VirtualNode] = ()
    pods: Sequence[PodView] = ()
    workloads: Sequence[WorkloadView] | None = None

    def virtual_node(self, name: str) -> VirtualNode | None:
        """The virtual node of this name."""
        return next((node for node in self.virtual if node.name == name), None)


@dataclass(frozen=True, slots=True)
class Selection:
    """What counts as what: the GPUs' resource, the home nodes, inference and training.

    ``home`` restricts home nodes by labels. ``inference`` are labels that an opted-in pod has, all
    of them. Empty ``queues`` means every queue.
    """

    resource: str = "nvidia.com/gpu"
    home: Mapping[str, str] = field(default_factory=dict)
    inference: Mapping[str, str] = field(default_factory=lambda: {names.BURST_LABEL: "true"})
    priority_classes: frozenset[str] = frozenset({"training"})
    queues: frozenset[str] = frozenset()

    def is_home(self, node: HomeNode) -> bool:
        """Whether this node counts as home."""
        return matches(node.labels, self.home)

    def is_inference(self, pod: PodView) -> bool:
        """Whether this pod may go out and is brought home."""
        return matches(pod.labels, self.inference)

    def is_training(self, pod: PodView) -> bool:
        """Whether this pod belongs to training, which always wins."""
        return pod.priority_class in self.priority_classes and not self.is_inference(pod)

    def is_training_workload(self, workload: WorkloadView) -> bool:
        """Whether this Workload is training: in one of the queues, and of its priority classes
        where it names any."""
        if workload.is_inference:
            return False
        named = workload.priority_classes
        if named and self.priority_classes and not named & self.priority_classes:
            return False
        return not self.queues or workload.cluster_queue in {"", *self.queues}


def matches(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether every wanted label is there with its value."""
    return wanted.items() <= labels.items()
