"""What the observer saw, moment by moment: how many replicas are Ready and where. Pure.

Fed with the observer's lines in the order of their arrival; feeds the judge, the show and the
picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Json = Mapping[str, Any]
PREEMPTED = "PreemptionByScheduler"
EVICTED = "EvictionByEvictionAPI"
GATE = "vk-provider.dev/gate"
OPEN = "open"
_OVER = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod at its last event."""

    uid: str
    name: str
    app: str
    node: str = ""
    phase: str = "Pending"
    is_ready: bool = False
    is_ending: bool = False
    disrupted_by: str = ""

    @classmethod
    def of(cls, found: Json) -> Pod:
        """Read an API object."""
        metadata, status = found["metadata"], found["status"]
        conditions = {each["type"]: each for each in status.get("conditions") or ()}
        target = conditions.get("DisruptionTarget", {})
        return cls(
            uid=metadata["uid"],
            name=metadata["name"],
            app=(metadata.get("labels") or {}).get("app", ""),
            node=found["spec"].get("nodeName", ""),
            phase=status.get("phase", "Pending"),
            is_ready=conditions.get("Ready", {}).get("status") == "True",
            is_ending="deletionTimestamp" in metadata,
            disrupted_by=target.get("reason", "") if target.get("status") == "True" else "",
        )

    @property
    def serves(self) -> bool:
        """Whether traffic reaches it: Ready, and nobody has asked for its end."""
        return self.is_ready and not self.is_ending and self.phase == "Running"


@dataclass(frozen=True, slots=True)
class Moment:
    """The picture between two events. Counts are of inference replicas if nothing else is said."""

    at: float
    ready_home: int = 0
    ready_outside: int = 0
    starting_home: int = 0
    starting_outside: int = 0
    waiting: int = 0
    training: int = 0
    """Pods of the training job that hold GPUs at home."""
    gates: tuple[tuple[str, str], ...] = ()
    """Each virtual node and its gate, by name."""
    nodes: tuple[tuple[str, int, int], ...] = ()
    """Each virtual node with its serving and its starting replicas, by name."""

    @property
    def ready(self) -> int:
        """Replicas that serve, wherever."""
        return self.ready_home + self.ready_outside

    @property
    def gate(self) -> str:
        """The gates in words: one if all are the same, else in the order of the nodes' names."""
        values = [value for _, value in self.gates]
        return values[0] if len(set(values)) == 1 else "/".join(values)


@dataclass(frozen=True, slots=True)
class Loss:
    """A replica that was asked to go: when, from where, why."""

    at: float
    pod: Pod
    outside: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Start:
    """A replica that became Ready: when and where."""

    at: float
    pod: Pod
    outside: bool


@dataclass(slots=True)
class History:
    """Grows with every event; nothing is ever forgotten."""

    inference: str = "chat"
    training: str = "train"
    moments: list[Moment] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    events: int = 0
    gaps: int = 0
    _pods: dict[str, Pod] = field(default_factory=dict)
    _gates: dict[str, str] = field(default_factory=dict)

    def take(self, line: Json) -> Moment | None:
        """Absorb one line; return the new moment if it changed the picture."""
        self.events += 1
        if "object" not in line:
            self.gaps += 1
            return None
        found = line["object"]
        if found.get("kind") == "Node":
            self._node(found, line["type"] == "DELETED")
        else:
            self._pod(Pod.of(found), line["type"] == "DELETED", line["t"])
        return self._moment(line["t"])

    @property
    def now(self) -> Moment:
        """The picture after the last event."""
        return self.moments[-1] if self.moments else Moment(0.0)

    def between(self, since: float, until: float) -> Iterator[Moment]:
        """Every picture that held at some time of a span, the one at its beginning included."""
        for moment, following in zip(self.moments, [*self.moments[1:], None], strict=True):
            if moment.at <= until and (following is None or following.at > since):
                yield moment

    def evictions(self, since: float = 0.0, until: float = float("inf")) -> list[Loss]:
        """Replicas outside that were asked to come home in a span of time."""
        return [
            loss
            for loss in self.losses
            if loss.outside and loss.reason == EVICTED and since <= loss.at <= until
        ]

    def serving(self) -> list[Pod]:
        """The replicas that serve now."""
        return [pod for pod in self._pods.values() if pod.app == self.inference and pod.serves]

    def preemptions(self) -> list[Loss]:
        """Replicas that training pushed out."""
        return [loss for loss in self.losses if loss.reason == PREEMPTED]

    def _node(self, node: Json, deleted: bool) -> None:
        labels = node["metadata"].get("labels") or {}
        if labels.get("type") != "virtual-kubelet":
            return
        name = node["metadata"]["name"]
        taints = {each["key"]: each.get("value", "") for each in node["spec"].get("taints") or ()}
        self._gates[name] = taints.get(GATE, OPEN)
        if deleted:
            del self._gates[name]

    def _pod(self, pod: Pod, deleted: bool, at: float) -> None:
        before = self._pods.pop(pod.uid, None)
        if not deleted:
            self._pods[pod.uid] = pod
        if pod.app != self.inference:
            return
        outside = pod.node in self._gates
        if pod.serves and not (before and before.serves):
            self.starts.append(Start(at, pod, outside))
        was_ending = before is not None and before.is_ending
        if (pod.is_ending or deleted) and not was_ending and pod.phase not in _OVER:
            reason = pod.disrupted_by or (before.disrupted_by if before else "")
            self.losses.append(Loss(at, pod, outside, reason))

    def _moment(self, at: float) -> Moment | None:
        made = self._count(at)
        if self.moments and replace(made, at=self.now.at) == self.now:
            return None
        self.moments.append(made)
        return made

    def _count(self, at: float) -> Moment:
        replicas = [pod for pod in self._pods.values() if pod.app == self.inference]
        living = [p for p in replicas if not p.is_ending and p.phase not in _OVER]
        outside = [pod for pod in living if pod.node in self._gates]
        home = [pod for pod in living if pod.node and pod.node not in self._gates]
        ready_home, ready_outside = sum(p.serves for p in home), sum(p.serves for p in outside)
        training = [pod for pod in self._pods.values() if pod.app == self.training and pod.node]
        return Moment(
            at,
            ready_home,
            ready_outside,
            len(home) - ready_home,
            len(outside) - ready_outside,
            waiting=sum(not pod.node for pod in living),
            training=sum(pod.phase not in _OVER for pod in training),
            gates=tuple(sorted(self._gates.items())),
            nodes=tuple(_per_node(outside, name) for name in sorted(self._gates)),
        )


def _per_node(outside: list[Pod], name: str) -> tuple[str, int, int]:
    there = [pod for pod in outside if pod.node == name]
    ready = sum(pod.serves for pod in there)
    return name, ready, len(there) - ready
