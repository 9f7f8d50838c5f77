"""One remote pod as an Observation: its status as its own kubelet reports it.

Restarts, probes and hooks are the remote kubelet's, so its words (CrashLoopBackOff, restart counts,
ImagePullBackOff, last states) are passed on. A pod that the other cluster took back (evicted,
preempted, drained) ended by preemption; one that it refused or lost ended by loss.
Pure. Fed by ``provider`` with an object of the remote API server; feeds the core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from vk_provider.pods.conditions import RESIZING
from vk_provider.pods.reading import mapping, mappings, number, strings, text
from vk_provider.pods.types import (
    ContainerObservation,
    ContainerState,
    EndCause,
    InstancePhase,
    InstanceRef,
    Json,
    Observation,
    Running,
    Stamp,
    Terminated,
    Waiting,
)
from vk_provider_kubernetes import stamp as marks
from vk_provider_kubernetes.references import Reference
from vk_provider_kubernetes.translate import GATE

NODE = "vk-provider.dev/remote-node"
"""On the home pod: the other cluster's node that runs it."""

UNFINISHED_AFTER = timedelta(minutes=5)
"""A pod whose gate is still closed after so long was left behind by a create that broke off."""

_TAKEN_BACK = frozenset(
    {"Evicted", "Preempting", "Preempted", "Shutdown", "NodeShutdown", "Terminated"}
)
_TAKEN_BACK_CONDITIONS = frozenset(
    {
        "PreemptionByScheduler",
        "DeletionByTaintManager",
        "EvictionByEvictionAPI",
    }
)
_REFUSED = frozenset(
    {
        "AppArmor",
        "PodFeatureUnsupported",
        "PodLevelResourcesNotSupported",
        "PodOSNotSupported",
        "SupplementalGroupsPolicyNotSupported",
        "SysctlForbidden",
    }
)
"""What a kubelet says that does not take a pod for its spec: another one would say the same."""
_BY_KUBELET = "TerminationByKubelet"
"""Said of evictions and shutdowns, whose reason says so too where there is one, and by kubelets
such as our own of every end that was not the containers'."""
_DELETED = "its pod was deleted in the other cluster"
_TWO_CLOCKS = timedelta(seconds=2)
"""A node's and its API server's may differ."""
_PHASES = {
    "Pending": InstancePhase.STARTING,
    "Running": InstancePhase.RUNNING,
    "Succeeded": InstancePhase.ENDED,
    "Failed": InstancePhase.ENDED,
}


def observe(pod: Json, stamp: Stamp, now: datetime) -> Observation:
    """The instance as the core's value. Equal as long as nothing has changed.

    ``now`` matters only to a pod whose creation broke off half way.
    """
    status = mapping(pod, "status")
    phase = _phase(pod, status)
    cause, reason, message = _end(status) if phase is InstancePhase.ENDED else (None, None, None)
    if phase is InstancePhase.ENDED and cause is None and _was_told_to_end(pod, status):
        cause, message = EndCause.LOST, _DELETED
    if phase is InstancePhase.STARTING:
        reason, message = _why_pending(pod, status)
        if _is_unfinished(pod, now):
            phase, cause = InstancePhase.ENDED, EndCause.LOST
            message = "its creation broke off before its ConfigMaps and Secrets were copied"
    return Observation(
        stamp=stamp,
        ref=InstanceRef(str(Reference.of(pod))),
        phase=phase,
        containers=tuple(_containers(status, "containerStatuses")),
        init_containers=tuple(_containers(status, "initContainerStatuses")),
        ephemeral_containers=tuple(_containers(status, "ephemeralContainerStatuses")),
        ended_by=cause,
        reason=reason,
        message=message,
        addresses=_addresses(status),
        created_at=_time(mapping(pod, "metadata"), "creationTimestamp"),
        annotations=_annotations(pod),
        generation=_generation(pod),
        resizing=tuple(_resizing(status)),
    )


def removed(pod: Json, stamp: Stamp, now: datetime) -> Observation:
    """An instance whose object is gone, from its last version: what it ended as, or that it was
    taken back, or that somebody else deleted it. What we delete ourselves is not judged by it."""
    last = observe(pod, stamp, now)
    if last.phase is InstancePhase.ENDED:
        return last
    status = mapping(pod, "status")
    cause, reason, message = _end(status)
    if cause is not EndCause.PREEMPTED:
        cause, message = EndCause.LOST, _DELETED
    return replace(last, phase=InstancePhase.ENDED, ended_by=cause, reason=reason, message=message)


def _phase(pod: Json, status: Json) -> InstancePhase:
    found = _PHASES.get(text(status, "phase"), InstancePhase.UNKNOWN)
    if found is InstancePhase.ENDED or "deletionTimestamp" not in mapping(pod, "metadata"):
        return found
    return InstancePhase.DELETING


def _end(status: Json) -> tuple[EndCause | None, str | None, str | None]:
    """Why a pod that is over is over, where it was not its containers' own doing."""
    reason, message = text(status, "reason"), text(status, "message")
    disruption = _condition(status, "DisruptionTarget")
    target = text(disruption, "reason") if text(disruption, "status") == "True" else ""
    told = message or text(disruption, "message") or None
    named = reason or target or None
    words = f"{named}: {told}" if named and told else named or told
    is_unnamed = target == _BY_KUBELET and not reason
    if reason in _TAKEN_BACK or target in _TAKEN_BACK_CONDITIONS or is_unnamed:
        return EndCause.PREEMPTED, named, words
    if reason in _REFUSED and not _has_run(status):
        return EndCause.REFUSED, reason, message or None
    if text(status, "phase") == "Failed" and (target or not _has_run(status)):
        return EndCause.LOST, named, words
    return None, named, words


def _was_told_to_end(pod: Json, status: Json) -> bool:
    """Whether somebody over there deleted it while it ran: its exit codes are no doing of its own.
    One that succeeded has, whatever the hurry; a deletion that we ordered is not judged by it."""
    metadata = mapping(pod, "metadata")
    gone_at = _time(metadata, "deletionTimestamp")
    if gone_at is None or text(status, "phase") != "Failed":
        return False
    ordered_at = gone_at - timedelta(seconds=number(metadata, "deletionGracePeriodSeconds") or 0)
    ends = [
        _time(mapping(mapping(each, "state"), "terminated"), "finishedAt")
        for _, each in mappings(status, "containerStatuses")
    ]
    return any(end is not None and end + _TWO_CLOCKS >= ordered_at for end in ends)


def _has_run(status: Json) -> bool:
    """Whether a container, of whichever kind, was seen to end: then its code says why."""
    fields = ("initContainerStatuses", "containerStatuses")
    return any(
        "terminated" in mapping(each, "state")
        for name in fields
        for _, each in mappings(status, name)
    )


def _why_pending(pod: Json, status: Json) -> tuple[str | None, str | None]:
    """A queue's gate or the scheduler's word, as long as no container's own status says more."""
    scheduled = _condition(status, "PodScheduled")
    reason = text(scheduled, "reason") or None
    if text(scheduled, "status") != "False":
        return None, None
    if reason != "SchedulingGated":
        return reason, text(scheduled, "message") or None
    gates = ", ".join(name for name in _gates(pod) if name != GATE)
    return (reason, f"its gate {gates} is closed in the other cluster") if gates else (None, None)


def _is_unfinished(pod: Json, now: datetime) -> bool:
    made = _time(mapping(pod, "metadata"), "creationTimestamp")
    return is_gated(pod) and made is not None and now - made > UNFINISHED_AFTER


def is_gated(pod: Json) -> bool:
    """Whether the pod still waits for its copies."""
    return GATE in _gates(pod)


def _gates(pod: Json) -> list[str]:
    gates = mappings(mapping(pod, "spec"), "schedulingGates")
    return [text(gate, "name") for _, gate in gates]


def _condition(status: Json, kind: str) -> Json:
    found = [each for _, each in mappings(status, "conditions") if text(each, "type") == kind]
    return found[0] if found else {}


def _containers(status: Json, field: str) -> Iterator[ContainerObservation]:
    is_cleared = _is_cleared(status)
    for _, each in mappings(status, field):
        state = _state(mapping(each, "state"))
        last = _state(mapping(each, "lastState"))
        yield ContainerObservation(
            name=text(each, "name"),
            state=state,
            last_state=last if isinstance(last, Terminated) else None,
            ready=each.get("ready") is True and not (is_cleared and isinstance(state, Running)),
            restart_count=number(each, "restartCount") or 0,
            image=text(each, "image") or None,
            image_id=text(each, "imageID") or None,
            container_id=text(each, "containerID") or None,
            resources=mapping(each, "resources") or None,
            allocated=mapping(each, "allocatedResources") or None,
        )


def _is_cleared(status: Json) -> bool:
    """Whether the pod is not Ready although its containers are: their node is silent, and the node
    controller over there says so in this condition alone."""
    ready, whole = (_condition(status, kind) for kind in ("Ready", "ContainersReady"))
    return (text(ready, "status"), text(whole, "status")) == ("False", "True")


def _state(state: Json) -> ContainerState:
    if "running" in state:
        return Running(_time(mapping(state, "running"), "startedAt"))
    if "terminated" in state:
        ended = mapping(state, "terminated")
        return Terminated(
            exit_code=number(ended, "exitCode"),
            reason=text(ended, "reason") or None,
            message=text(ended, "message") or None,
            signal=number(ended, "signal"),
            started_at=_time(ended, "startedAt"),
            finished_at=_time(ended, "finishedAt"),
        )
    waiting = mapping(state, "waiting")
    return Waiting(text(waiting, "reason") or None, text(waiting, "message") or None)


def _addresses(status: Json) -> tuple[str, ...]:
    found = [text(each, "ip") for _, each in mappings(status, "podIPs")]
    return tuple(filter(None, found or [text(status, "podIP")]))


def _annotations(pod: Json) -> dict[str, str]:
    node = text(mapping(pod, "spec"), "nodeName")
    return {NODE: node} if node else {}


def _generation(pod: Json) -> int | None:
    """Up to which generation of the home pod its kubelet has seen the changes that were brought
    over; 0 while one of them is on its way, None where nobody tells."""
    metadata = mapping(pod, "metadata")
    brought = strings(metadata, "annotations").get(marks.GENERATION, "")
    seen = number(mapping(pod, "status"), "observedGeneration")
    if not seen or not brought.isdecimal():
        return None
    return int(brought) if seen >= (number(metadata, "generation") or 0) else 0


def _resizing(status: Json) -> Iterator[Json]:
    for _, each in mappings(status, "conditions"):
        if text(each, "type") in RESIZING:
            yield {key: text(each, key) for key in ("type", "status", "reason", "message")}


def _time(parent: Json, key: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text(parent, key))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
