"""What moving a Deployment's pods without a loss is about: its state, and the steps of it. Pure.

Replicas are raised, the new ones become Ready elsewhere, those that are to go get the lowest
deletion cost, and the replicas are lowered again: the ReplicaSet then deletes the right ones. Where
it stands is kept in an annotation of the Deployment, so that a new leader resumes or undoes it.
Fed by ``controllers.deployments_view``; feeds :mod:`.relocation` and ``controllers.evacuation``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

LAST_COST = "-2147483647"
"""Deletion cost of a pod that is to go first: the lowest that Kubernetes takes, but one."""


class Phase(StrEnum):
    """How far a relocation is."""

    SURGING = "surging"
    """More replicas than asked for; the new ones are awaited."""
    SHRINKING = "shrinking"
    """The number asked for stands again; what is superfluous goes."""


@dataclass(frozen=True, slots=True)
class Scaler:
    """A HorizontalPodAutoscaler that owns the replicas of a Deployment."""

    name: str
    min_replicas: int
    max_replicas: int


@dataclass(frozen=True, slots=True)
class Relocation:
    """The annotation. ``replicas`` is what the owner wants, ``target`` what we wrote last.

    ``scaler`` is the autoscaler as it was found, ``bound`` what its bounds were widened to (0: not
    at all); ``costs`` are the deletion costs that pods had
    before, by UID, where they had one. ``homeward``: it was begun to bring pods home.
    """

    phase: Phase
    replicas: int
    target: int
    since: datetime
    scaler: Scaler | None = None
    bound: int = 0
    costs: Mapping[str, str] = field(default_factory=dict)
    homeward: bool = False

    def to_json(self) -> str:
        """The annotation's text."""
        found: dict[str, Any] = {
            "phase": self.phase.value,
            "replicas": self.replicas,
            "target": self.target,
            "since": self.since.isoformat(),
        }
        if self.scaler is not None:
            s = self.scaler
            found["scaler"] = {"name": s.name, "min": s.min_replicas, "max": s.max_replicas}
            found["bound"] = self.bound
        if self.homeward:
            found["homeward"] = True
        if self.costs:
            found["costs"] = dict(self.costs)
        return json.dumps(found, separators=(",", ":"))


def read_relocation(text: str | None) -> Relocation | None:
    """The annotation read back; None for none, and for one that nobody of us wrote."""
    try:
        found = json.loads(text or "")
        return Relocation(
            phase=Phase(found["phase"]),
            replicas=int(found["replicas"]),
            target=int(found["target"]),
            since=_moment(found["since"]),
            scaler=_scaler(found.get("scaler")),
            bound=int(found.get("bound", 0)),
            homeward=found.get("homeward") is True,
            costs={str(uid): str(cost) for uid, cost in (found.get("costs") or {}).items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("a moment without a time zone")
    return found


def _scaler(found: Mapping[str, Any] | None) -> Scaler | None:
    if found is None:
        return None
    return Scaler(str(found["name"]), int(found["min"]), int(found["max"]))


@dataclass(frozen=True, slots=True)
class Deployment:
    """A Deployment as far as moving its pods needs it.

    ``is_settled``: its controller has seen this spec and no rollout is under way. ``revisions`` are
    the UIDs of its ReplicaSets, which own the pods. ``has_annotation``: whatever it says.
    """

    uid: str
    namespace: str
    name: str
    replicas: int
    resource_version: str = ""
    is_settled: bool = True
    revisions: frozenset[str] = frozenset()
    relocation: Relocation | None = None
    has_annotation: bool = False
    scaler: Scaler | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    """Write the replicas and the annotation in one PATCH; ``relocation`` None removes it."""

    deployment: Deployment
    replicas: int
    relocation: Relocation | None


@dataclass(frozen=True, slots=True)
class ScaleScaler:
    """Write the bounds of the autoscaler."""

    deployment: Deployment
    scaler: Scaler


@dataclass(frozen=True, slots=True)
class SetCost:
    """Write a pod's deletion cost; None removes it."""

    namespace: str
    name: str
    uid: str
    cost: str | None


Move = Scale | ScaleScaler | SetCost
