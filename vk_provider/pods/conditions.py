"""The conditions a kubelet owns, computed from container statuses and merged with what is there.

Fed by :mod:`vk_provider.pods.status`, which has rendered the container statuses; feeds its
``conditions``. Conditions of other owners (readiness gates, controllers) are carried as found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vk_provider.pods.container_facts import (
    has_started,
    is_done,
    is_running,
    is_sidecar,
    mapping,
    timestamp,
)
from vk_provider.pods.types import Json, Verdict

READY_TO_START = "PodReadyToStartContainers"
INITIALIZED = "Initialized"
READY = "Ready"
CONTAINERS_READY = "ContainersReady"
SCHEDULED = "PodScheduled"
DISRUPTION = "DisruptionTarget"
RESIZING = ("PodResizePending", "PodResizeInProgress")
"""There only while they are true: what follows a change of size takes them away again."""
TERMINATION_BY_KUBELET = "TerminationByKubelet"

_ORDER = (DISRUPTION, READY_TO_START, INITIALIZED, READY, CONTAINERS_READY, SCHEDULED)
_ENDED_REASON = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}

Condition = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ConditionInput:
    """What the conditions are computed from: the phase to be written and the rendered statuses.

    ``verdict`` is one that is about to be written; one that says so adds
    DisruptionTarget to the same patch. ``resizing`` is what the backend says of a change of size;
    None where it can't make any.
    """

    pod: Json
    phase: str
    containers: Sequence[Json] = ()
    init_containers: Sequence[Json] = ()
    has_instance: bool = False
    verdict: Verdict | None = None
    resizing: Sequence[Json] | None = None


def render_conditions(given: ConditionInput, now: datetime) -> list[Condition]:
    """All conditions: foreign ones first and untouched, then ours in the kubelet's order."""
    current = {
        condition["type"]: condition
        for condition in objects(mapping(given.pod.get("status")).get("conditions"))
        if isinstance(condition.get("type"), str)
    }
    ours = {condition["type"]: condition for condition in _wanted(given, current)}
    told = RESIZING if given.resizing is not None else ()
    foreign = [dict(kept) for name, kept in current.items() if name not in (*ours, *told)]
    generation = mapping(given.pod.get("metadata")).get("generation")
    return foreign + [
        _stamped(ours[name], mapping(current.get(name)), generation, now)
        for name in (*_ORDER, *RESIZING)
        if name in ours
    ]


def objects(value: object) -> list[Json]:
    """The JSON objects in a list; empty for anything else."""
    return [item for item in value if mapping(item)] if isinstance(value, list) else []


def _wanted(given: ConditionInput, current: Json) -> list[Condition]:
    containers_ready = _containers_ready(given)
    has_instance = given.has_instance or _is_true(current, READY_TO_START)
    wanted = [
        _condition(READY_TO_START, has_instance and given.phase not in _ENDED_REASON),
        _initialized(given),
        _ready(given, containers_ready, current),
        containers_ready,
        _condition(SCHEDULED, True),
    ]
    for told in given.resizing or ():
        reason, message = told.get("reason"), told.get("message")
        is_true = told.get("status") == "True"
        wanted.append(_condition(str(told.get("type")), is_true, reason, message))
    if given.verdict and given.verdict.disruption:
        message = given.verdict.message
        wanted.append(_condition(DISRUPTION, True, TERMINATION_BY_KUBELET, message))
    return wanted


def _is_true(current: Json, name: str) -> bool:
    return mapping(current.get(name)).get("status") == "True"


def _condition(
    name: str, is_true: bool, reason: str | None = None, message: str | None = None
) -> Condition:
    condition: Condition = {"type": name, "status": "True" if is_true else "False"}
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    return condition


def _stamped(wanted: Condition, current: Json, generation: object, now: datetime) -> Condition:
    """Times and generation: the transition is now only if the status changes."""
    moved = current.get("lastTransitionTime")
    if not moved or current.get("status") != wanted["status"]:
        moved = timestamp(now)
    stamped = {**wanted, "lastTransitionTime": moved}
    if isinstance(generation, int) and generation > 0:
        stamped["observedGeneration"] = generation
    return stamped


def _initialized(given: ConditionInput) -> Condition:
    specs = objects(mapping(given.pod.get("spec")).get("initContainers"))
    if given.phase == "Succeeded":
        return _condition(INITIALIZED, True, "PodCompleted")
    if not specs or any(has_started(status) for status in given.containers):
        return _condition(INITIALIZED, True)
    found = {status["name"]: status for status in given.init_containers}
    waiting = [
        spec.get("name", "")
        for spec in specs
        if not _is_past(spec, mapping(found.get(spec.get("name", ""))))
    ]
    if not waiting:
        return _condition(INITIALIZED, True)
    message = f"containers with incomplete status: {_names(waiting)}"
    return _condition(INITIALIZED, False, "ContainersNotInitialized", message)


def _is_past(spec: Json, status: Json) -> bool:
    if is_sidecar(spec):
        return is_running(status) and bool(status.get("started"))
    return is_done(status)


def _containers_ready(given: ConditionInput) -> Condition:
    if ended := _ENDED_REASON.get(given.phase):
        return _condition(CONTAINERS_READY, False, ended)
    must_be_ready = [*_sidecars(given), *given.containers]
    if not must_be_ready:
        return _condition(CONTAINERS_READY, False, "UnknownContainerStatuses")
    unready = [status["name"] for status in must_be_ready if not status.get("ready")]
    if not unready:
        return _condition(CONTAINERS_READY, True)
    message = f"containers with unready status: {_names(unready)}"
    return _condition(CONTAINERS_READY, False, "ContainersNotReady", message)


def _sidecars(given: ConditionInput) -> list[Json]:
    specs = objects(mapping(given.pod.get("spec")).get("initContainers"))
    names = {spec.get("name") for spec in specs if is_sidecar(spec)}
    return [status for status in given.init_containers if status["name"] in names]


def _ready(given: ConditionInput, containers_ready: Condition, current: Json) -> Condition:
    if containers_ready["status"] != "True":
        return {**containers_ready, "type": READY}
    gates = objects(mapping(given.pod.get("spec")).get("readinessGates"))
    closed = [
        problem
        for gate in gates
        if (problem := _gate_problem(gate.get("conditionType", ""), current))
    ]
    if not closed:
        return _condition(READY, True)
    return _condition(READY, False, "ReadinessGatesNotReady", ", ".join(closed))


def _gate_problem(gate: str, current: Json) -> str | None:
    condition = mapping(current.get(gate))
    if not condition:
        return f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    status = condition.get("status")
    if status == "True":
        return None
    return f'the status of pod readiness gate "{gate}" is not "True", but {status}'


def _names(names: Iterable[object]) -> str:
    return f"[{' '.join(map(str, names))}]"
