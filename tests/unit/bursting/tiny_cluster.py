"""A cluster small enough for a unit test: two home nodes, one outside, a ReplicaSet that obeys.

Time passes by :meth:`TinyCluster.step`; what a plan says is written by :meth:`TinyCluster.write`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from vk_provider.bursting import names
from vk_provider.bursting.evacuation import Answer
from vk_provider.bursting.moves import Deployment, Move, Scale, Scaler, ScaleScaler
from vk_provider.bursting.picture import (
    HomeNode,
    Owner,
    Picture,
    PodView,
    VirtualNode,
    WorkloadView,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
CHECK = "room"
HOME = ("home-0", "home-1")
OUTSIDE = "burst"


def job(gpus: int = 8, count: int = 2, **more: Any) -> WorkloadView:
    """A training job that has quota and waits for our check."""
    usual: dict[str, Any] = {
        "uid": "job", "namespace": "ml", "name": "train", "cluster_queue": "train",
        "gpus": gpus * count, "pod_gpus": (gpus,), "pod_counts": (count,), "priority": 100,
        "priority_classes": frozenset({"training"}), "has_quota": True,
        "checks": {CHECK: "Pending"}, "checks_since": {CHECK: START}, "created_at": START,
    }  # fmt: skip
    return WorkloadView(**(usual | more))


@dataclass
class TinyCluster:
    """One Deployment of one-GPU pods. ``cold_start`` is how many steps a pod needs to be Ready;
    ``outside_slots`` how many pods fit outside; ``home_gpus`` what a home node has."""

    replicas: int = 16
    cold_start: int = 3
    outside_slots: int = 20
    home_gpus: int = 8
    scaler: Scaler | None = None
    workloads: list[WorkloadView] = field(default_factory=list)
    gate: str | None = None

    def __post_init__(self) -> None:
        self.now = START
        self.deployment = Deployment(
            "d", "web", "chat", self.replicas, "1", revisions=frozenset({"rs"}), scaler=self.scaler
        )
        self.pods: dict[str, PodView] = {}
        self.age: dict[str, int] = {}
        self.held: dict[str, int] = {}
        self.least_ready = self.replicas
        self._numbers = itertools.count()
        for _ in range(self.cold_start + 2):
            self._turn()

    @property
    def ready(self) -> int:
        """Replicas that serve."""
        return sum(pod.is_ready and not pod.is_terminating for pod in self.pods.values())

    def on(self, node: str) -> int:
        """How many pods a node has."""
        return sum(pod.node == node for pod in self.pods.values())

    def picture(self) -> Picture:
        """What a controller sees."""
        return Picture(
            home=[HomeNode(name, gpus=self.home_gpus) for name in HOME],
            virtual=[VirtualNode(OUTSIDE, gpus=self.outside_slots, gate=self.gate)],
            pods=list(self.pods.values()),
            workloads=self.workloads,
        )

    def write(self, moves: tuple[Move, ...]) -> None:
        """What an API server makes of a plan's writes."""
        for move in moves:
            if isinstance(move, Scale):
                self.deployment = replace(
                    self.deployment,
                    replicas=move.replicas,
                    relocation=move.relocation,
                    has_annotation=move.relocation is not None,
                )
            elif isinstance(move, ScaleScaler):
                self.deployment = replace(self.deployment, scaler=move.scaler)
            elif move.uid in self.pods:
                self.pods[move.uid] = replace(self.pods[move.uid], deletion_cost=move.cost)

    def answer(self, answers: tuple[Answer, ...]) -> None:
        """What Kueue makes of a check's word: the job is admitted and takes its GPUs."""
        for answer in answers:
            if answer.state == "Ready":
                self.workloads.remove(answer.workload)
                for gpus, count in zip(
                    answer.workload.pod_gpus, answer.workload.pod_counts, strict=True
                ):
                    for _ in range(count):
                        self._train(gpus)

    def step(self) -> None:
        """One step of time."""
        self.now += timedelta(seconds=1)
        self._turn()
        self.least_ready = min(self.least_ready, self.ready)

    def _turn(self) -> None:
        for uid in [uid for uid, pod in self.pods.items() if pod.is_terminating]:
            del self.pods[uid]
        # An autoscaler that has nothing to say but its bounds.
        scaler, wanted = self.deployment.scaler, self.deployment.replicas
        if scaler is not None:
            wanted = min(max(wanted, scaler.min_replicas), scaler.max_replicas)
            self.deployment = replace(self.deployment, replicas=wanted)
        while len(self.pods) < wanted:
            self._create()
        for pod in sorted(self.pods.values(), key=self._rank)[: len(self.pods) - wanted]:
            self.pods[pod.uid] = replace(pod, evicted_at=self.now)
        for uid, pod in self.pods.items():
            self.age[uid] += 1
            node = pod.node or self._place()
            is_ready = bool(node) and self.age[uid] > self.cold_start
            if (pod.node, pod.is_ready) != (node, is_ready):
                self.pods[uid] = replace(pod, node=node, is_ready=is_ready)

    def _rank(self, pod: PodView) -> tuple[bool, bool, int]:
        """Whom a ReplicaSet deletes first."""
        return bool(pod.node), pod.is_ready, int(pod.deletion_cost or 0)

    def _create(self) -> None:
        uid = f"pod-{next(self._numbers)}"
        labels = {names.BURST_LABEL: "true"}
        owner = Owner("ReplicaSet", "chat", "rs")
        self.pods[uid] = PodView(
            uid, "web", uid, gpus=1, owner=owner, labels=labels, created_at=self.now
        )
        self.age[uid] = 0

    def _place(self) -> str:
        for name in HOME:
            if self.on(name) + self.held.get(name, 0) < self.home_gpus:
                return name
        is_open = self.gate is None and self.on(OUTSIDE) < self.outside_slots
        return OUTSIDE if is_open else ""

    def _train(self, gpus: int) -> None:
        """Put a training pod where the fewest are in its way, and preempt those."""
        name = min(HOME, key=lambda each: self.on(each) + self.held.get(each, 0))
        self.held[name] = self.held.get(name, 0) + gpus
        here = [uid for uid, pod in self.pods.items() if pod.node == name]
        for uid in here[: max(0, len(here) + self.held[name] - self.home_gpus)]:
            del self.pods[uid]
