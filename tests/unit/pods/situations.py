"""Small builders for the tests of the lifecycle: a moment, a world, a pod, records in a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from vk_provider.pods import stimuli as news
from vk_provider.pods.actions import Action, CreateInstance
from vk_provider.pods.hints import render_placement
from vk_provider.pods.names import PLACEMENT
from vk_provider.pods.record import absorb, begin
from vk_provider.pods.slots import Record
from vk_provider.pods.types import (
    Candidate,
    ContainerObservation,
    ContainerState,
    InstancePhase,
    InstanceRef,
    Json,
    Observation,
    Offer,
    Placement,
    PodUID,
    ResolvedContainer,
    ResolvedPod,
    Running,
    Stamp,
)
from vk_provider.pods.world import BackendFacts, World

UID = PodUID("uid-1")
STAMP = Stamp("cluster", "burst", "ns", "web", UID)
NOW = datetime(2024, 5, 1, 10, tzinfo=UTC)
LAG = 5.0
REF = InstanceRef("i-1")
OTHER = InstanceRef("i-2")
CHEAP = Candidate("a", Offer("cheap"))
DEAR = Candidate("a", Offer("dear"))
ELSEWHERE = Candidate("b", Offer("only"))


def at(seconds: float) -> datetime:
    """So many seconds after the beginning."""
    return NOW + timedelta(seconds=seconds)


def make_world(seconds: float = 0.0, **fields: Any) -> World:
    """A node with backends ``a`` and ``b``, an open door and nothing held back."""
    given: dict[str, Any] = {
        "now": at(seconds),
        "facts": {"a": BackendFacts(), "b": BackendFacts()},
        "held_until": lambda: None,
        "refusal": lambda _: None,
        "cooled": lambda _: False,
        "host_ip": "10.0.0.9",
    }
    return World(**(given | fields))


def make_pod(
    *,
    owner: str | None = "ReplicaSet",
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    placed: Candidate | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod of one container ``main``, owned by a ReplicaSet."""
    meta: dict[str, Any] = {"name": "web", "namespace": "ns", "uid": UID, "resourceVersion": "5"}
    if owner is not None:
        meta["ownerReferences"] = [{"kind": owner, "name": "web-1", "controller": True}]
    if placed is not None:
        placement = Placement(UID, placed.backend, placed.offer.id)
        meta["annotations"] = {PLACEMENT: render_placement(placement)}
    containers = [{"name": "main", "image": "img"}]
    return {
        "metadata": meta | dict(metadata or {}),
        "spec": {"restartPolicy": "Always", "containers": containers} | spec,
        "status": {"phase": "Pending"} | dict(status or {}),
    }


def running_status(**more: Any) -> dict[str, Any]:
    """The status of a pod that runs and is Ready."""
    state = {"running": {"startedAt": "2024-05-01T10:00:00Z"}}
    return {
        "phase": "Running",
        "startTime": "2024-05-01T10:00:00Z",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "main", "image": "img", "ready": True, "state": state}],
    } | more


def container(state: ContainerState, name: str = "main") -> ContainerObservation:
    """One container in this state."""
    return ContainerObservation(name, state)


def instance(
    phase: InstancePhase = InstancePhase.RUNNING,
    *containers: ContainerObservation,
    ref: InstanceRef = REF,
    **fields: Any,
) -> Observation:
    """The pod's instance; a running one runs ``main``."""
    if phase is InstancePhase.RUNNING and not containers:
        containers = (container(Running()),)
    return Observation(STAMP, ref, phase, tuple(containers), **fields)


def resolved(pod: Json, gpus: int = 0) -> ResolvedPod:
    """The pod with nothing left to look up."""
    return ResolvedPod(
        STAMP, pod, (ResolvedContainer("main", "img", "spec.containers[0]"),), gpu_count=gpus
    )


def prepared(*candidates: Candidate, gpus: int = 0, **fields: Any) -> news.Prepared:
    """A preparation that found these candidates."""
    return news.Prepared(resolved(make_pod(), gpus), candidates, **fields)


def new(pod: Json | None = None, **slots: Any) -> Record:
    """A record that has just seen its pod."""
    record = absorb(Record(UID, NOW), news.PodSeen(pod or make_pod()))
    return replace(record, **slots)


def told(record: Record, *stimuli: news.Stimulus) -> Record:
    """The record after all this news."""
    for stimulus in stimuli:
        record = absorb(record, stimulus)
    return record


def creating(pod: Json | None = None, candidate: Candidate = CHEAP, **slots: Any) -> Record:
    """A record whose create call is in flight."""
    pod = pod or make_pod()
    record = new(pod, prepared=prepared(CHEAP, DEAR, ELSEWHERE), **slots)
    return begin(record, CreateInstance(resolved(pod), candidate))


def live(pod: Json | None = None, seen: Observation | None = None, **slots: Any) -> Record:
    """A record whose instance is there; made at NOW, seen ten seconds later."""
    record = told(creating(pod), news.Created("a", REF, NOW))
    record = absorb(record, news.Observed("a", seen or instance(), at(10), LAG))
    return replace(record, **slots)


def kinds(actions: list[Action]) -> list[str]:
    """The names of the actions."""
    return [type(action).__name__ for action in actions]


def miss(seconds: float, backend: str = "a") -> news.Missed:
    """A complete list that does not show the pod."""
    return news.Missed(backend, at(seconds), LAG)


def sight(seconds: float, seen: Observation | None = None, *extras: InstanceRef) -> news.Observed:
    """A list of backend ``a`` that shows the pod's instance."""
    return news.Observed("a", seen or instance(), at(seconds), LAG, extras)
