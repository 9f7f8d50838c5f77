"""A cluster in virtual time for the gate: pods, a scheduler, training, a descheduler that obeys.

Everything that the gate sees goes through the views, and its state through
the annotation, as in a cluster.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tests.unit.bursting.views import BURST, CHAT, NOW
from vk_provider.bursting import gate_state
from vk_provider.bursting.gate import step
from vk_provider.bursting.gate_state import Gate, GateState
from vk_provider.bursting.limits import SignalLimits
from vk_provider.bursting.picture import HomeNode, Picture, PodView, VirtualNode
from vk_provider.bursting.signals import Doubts, Kueue, PrometheusSignal, WatchSignal, judge
from vk_provider.bursting.situation import Rules, situations

HOME = ("home-0", "home-1")
GPUS = 8
OUTSIDE = "burst"


@dataclass
class World:
    """``cold_start``, ``stop`` (termination) and ``cycle`` (the descheduler's) are seconds."""

    rules: Rules
    replicas: int = 16
    cold_start: int = 20
    stop: int = 3
    cycle: int = 60
    per_cycle: int = 2
    prometheus: PrometheusSignal | None = None
    kueue: Kueue = Kueue.ABSENT
    unavailable: str | None = None

    now: datetime = NOW
    pods: dict[str, PodView] = field(default_factory=dict)
    moves: list[tuple[datetime, str, str]] = field(default_factory=list)
    """When the gate moved, where to and why."""
    most_in_flight: int = 0
    longest_wait: float = 0.0
    """How long a pod was unschedulable at most, in seconds."""

    def __post_init__(self) -> None:
        self._numbers = itertools.count()
        self._doubts = Doubts()
        self._ends: dict[str, datetime] = {}
        self.annotation = gate_state.render(gate_state.initial(self.now))
        for _ in range(self.replicas):
            self._create()
        for uid, one in self.pods.items():
            self.pods[uid] = replace(one, node=self._place(one), phase="Running", is_ready=True)

    @property
    def state(self) -> GateState:
        """Where the gate stands: only what is written counts."""
        found = gate_state.read(self.annotation)
        assert found is not None
        return found

    def on(self, *nodes: str) -> int:
        """Ready inference pods on these nodes."""
        return sum(p.is_ready and p.node in nodes for p in self.pods.values() if p.labels)

    def train(self, gpus: int = GPUS) -> str:
        """A training pod comes and takes a node from whoever is on it."""
        uid = f"train-{next(self._numbers)}"
        self.pods[uid] = PodView(uid, "ml", uid, gpus=gpus, priority_class="training")
        return uid

    def end(self, uid: str) -> None:
        """Training is done."""
        del self.pods[uid]

    def restart(self) -> None:
        """A new leader: what was in memory is gone."""
        self._doubts = Doubts()

    def run(self, seconds: int, tick: int = 1) -> None:
        """So much time passes, in steps of this many seconds."""
        for _ in range(seconds // tick):
            self.step(tick)

    def step(self, seconds: int = 1) -> None:
        """One step."""
        self.now += timedelta(seconds=seconds)
        self._schedule()
        self._start_and_stop()
        self._replace()
        self._turn_gate()
        if int(self.now.timestamp()) % self.cycle == 0:
            self._deschedule()

    def picture(self) -> Picture:
        """What the watches show."""
        node = VirtualNode(OUTSIDE, gpus=64, gate=self.state.taint, unavailable=self.unavailable)
        home = [HomeNode(name, gpus=GPUS) for name in HOME]
        return Picture(home, [node], tuple(self.pods.values()))

    def _turn_gate(self) -> None:
        picture, before = self.picture(), self.state
        signal = WatchSignal(home_nodes=len(HOME), kueue=self.kueue)
        trust, self._doubts = judge(signal, self.prometheus, self._doubts, SignalLimits(), self.now)
        found = situations(picture, {OUTSIDE: before}, trust, self.rules, self.now)[OUTSIDE]
        after = step(before, found, self.rules, self.now)
        if after != before:
            self.annotation = gate_state.render(after)
            assert self.state == after
        if after.value is not before.value:
            self.moves.append((self.now, after.value, after.reason))
        self.most_in_flight = max(self.most_in_flight, found.homecoming.in_flight)
        waits = [(self.now - since).total_seconds() for since in found.waiting]
        self.longest_wait = max([self.longest_wait, *waits])

    def _create(self) -> None:
        uid = f"pod-{next(self._numbers)}"
        self.pods[uid] = PodView(
            uid, "web", uid, gpus=1, owner=CHAT, labels=BURST, created_at=self.now
        )

    def _free(self, node: str) -> int:
        return GPUS - sum(pod.gpus for pod in self.pods.values() if pod.node == node)

    def _place(self, pod: PodView) -> str:
        for node in HOME:
            if self._free(node) >= pod.gpus:
                return node
        return OUTSIDE if pod.labels and self.state.taint is None else ""

    def _schedule(self) -> None:
        """Training first; it preempts. Who finds nothing is unschedulable since the first try."""
        for uid, pod in sorted(self.pods.items(), key=lambda item: bool(item[1].labels)):
            if pod.node or pod.is_terminating:
                continue
            node = self._place(pod)
            if node:
                self.pods[uid] = replace(
                    pod, node=node, scheduled_at=self.now, unschedulable_since=None
                )
                self._ends[uid] = self.now + timedelta(seconds=self.cold_start)
                continue
            self.pods[uid] = replace(pod, unschedulable_since=pod.unschedulable_since or self.now)
            if not pod.labels:
                self._preempt()

    def _preempt(self) -> None:
        """The node with the least training gives up its inference."""
        for node in HOME:
            here = [p for p in self.pods.values() if p.node == node]
            if all(pod.labels for pod in here):
                for pod in here:
                    self._evict(pod)
                return

    def _evict(self, pod: PodView) -> None:
        if not pod.is_terminating:
            self.pods[pod.uid] = replace(pod, evicted_at=self.now, is_ready=False)
            self._ends[pod.uid] = self.now + timedelta(seconds=self.stop)

    def _start_and_stop(self) -> None:
        for uid, pod in list(self.pods.items()):
            if uid not in self._ends or self.now < self._ends[uid]:
                continue
            if pod.is_terminating:
                del self.pods[uid]
            elif not pod.is_ready:
                self.pods[uid] = replace(pod, phase="Running", is_ready=True, ready_since=self.now)

    def _replace(self) -> None:
        """The ReplicaSet answers at once."""
        there = sum(bool(p.labels) and not p.is_terminating for p in self.pods.values())
        for _ in range(self.replicas - there):
            self._create()

    def _deschedule(self) -> None:
        """One cycle: each pod is looked at alone, as `nodeFit` does."""
        if self.state.taint != Gate.RETURN or not any(self._free(node) > 0 for node in HOME):
            return
        outside = [p for p in self.pods.values() if p.node == OUTSIDE and not p.is_terminating]
        for pod in outside[: self.per_cycle]:
            self._evict(pod)
