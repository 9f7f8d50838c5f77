"""One container's status: what the backend shows now, joined with what the API already holds.

Fed by an Observation and the pod's current ``containerStatuses``; feeds
:mod:`vk_provider.pods.status`. The API's copy is the memory of what was seen before: a container
that had started does not go back to "waiting" because a backend's list was thin once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vk_provider.pods.container_facts import (
    has_started,
    is_done,
    is_in,
    is_sidecar,
    mapping,
    restart_count,
    timestamp,
)
from vk_provider.pods.events import TerminatedReason
from vk_provider.pods.types import (
    ContainerObservation,
    Json,
    Running,
    Terminated,
    Waiting,
)

UNKNOWN_EXIT_CODE = 137
"""An absent exitCode would be stored as 0, which reads as success."""

_MESSAGE_BYTES = 4096
_POD_MESSAGE_BYTES = 12288
_UNSEEN_END = "The container could not be located when the pod was terminated"
_UNSEEN_CODE = "The container ended; the backend tells no exit code"
_UNSEEN_INIT = (
    "Unable to get init container status from the backend and the pod has been initialized"
)

Status = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ContainerInput:
    """Everything one container's status is made from.

    ``container_id`` is the id without a restart's suffix; ``waiting`` is what to say while it has
    not started; ``message_bytes`` is its share of the pod's termination messages.
    """

    spec: Json
    seen: ContainerObservation | None
    before: Json
    waiting: Waiting
    container_id: str | None = None
    probes_run: bool = False
    serving: bool = True
    message_bytes: int = _MESSAGE_BYTES


def message_share(containers: int) -> int:
    """How many bytes of termination message each of a pod's containers may keep."""
    return min(_MESSAGE_BYTES, _POD_MESSAGE_BYTES // max(containers, 1))


def render_container(given: ContainerInput) -> Status:
    """The status of one container. Only observed facts, on top of what was observed before."""
    restarts = _restarts(given)
    state = _state(given, restarts)
    status: Status = {
        **given.before,
        "name": given.spec.get("name", ""),
        "image": _first(given.seen and given.seen.image, given.before.get("image"))
        or given.spec.get("image", ""),
        "imageID": _first(given.seen and given.seen.image_id, given.before.get("imageID")) or "",
        "state": state,
        "lastState": _last_state(given, restarts),
        "ready": False,
        "restartCount": restarts,
        "started": False,
        **_resources(given.seen),
    }
    if has_started(status) and (identity := _container_id(given, restarts)):
        status["containerID"] = identity
    if is_in(state, "running"):
        status["ready"] = _is_ready(given)
        status["started"] = _is_started(given, ready=status["ready"])
    return status


def finish(status: Json) -> Status:
    """The same container in a pod whose phase is terminal: one that had started has ended.

    An end that nobody saw is exit code 137 and ``ContainerStatusUnknown``; one that waited for its
    next start ended the way its last run did. A container that never started stays as it is.
    """
    state = mapping(status.get("state"))
    if is_in(state, "terminated") or not has_started(status):
        return dict(status)
    finished = {**status, "ready": False, "started": False}
    last = mapping(status.get("lastState")).get("terminated")
    if last and not is_in(state, "running"):
        return {**finished, "state": {"terminated": last}, "lastState": {}}
    ended: Status = {
        "exitCode": UNKNOWN_EXIT_CODE,
        "reason": TerminatedReason.CONTAINER_STATUS_UNKNOWN.value,
        "message": _UNSEEN_END,
    }
    if began := mapping(state.get("running")).get("startedAt"):
        ended["startedAt"] = began
    if identity := status.get("containerID"):
        ended["containerID"] = identity
    return {**finished, "state": {"terminated": ended}}


def complete_init(spec: Json, status: Status, *, is_past: bool) -> Status:
    """An init container that is done is ready, or ``kubectl get pods`` would print ``Init``.

    ``is_past``: a regular container has started. One that the backend never mentions must then
    have completed, and is written as the kubelet writes it.
    """
    if is_sidecar(spec):
        return status
    if is_past and not has_started(status):
        reason = TerminatedReason.COMPLETED.value
        ended = {"exitCode": 0, "reason": reason, "message": _UNSEEN_INIT}
        status = {**status, "state": {"terminated": ended}}
    return {**status, "ready": is_done(status)}


def _resources(seen: ContainerObservation | None) -> Status:
    """What it has now, which differs from its spec while it is being resized."""
    if seen is None:
        return {}
    return _present(resources=seen.resources, allocatedResources=seen.allocated)


def _first(*values: object) -> Any:
    return next((value for value in values if value), None)


def _restarts(given: ContainerInput) -> int:
    """Never falls, whatever a backend says: it is rebuilt from the API's copy."""
    return max(restart_count(given.before), given.seen.restart_count if given.seen else 0)


def _has_restarted(given: ContainerInput, restarts: int) -> bool:
    return restarts > restart_count(given.before)


def _state(given: ContainerInput, restarts: int) -> Status:
    before = mapping(given.before.get("state"))
    seen = given.seen.state if given.seen else None
    if isinstance(seen, Terminated):
        return _ended_state(given, seen, _container_id(given, restarts), before)
    restarted = _has_restarted(given, restarts)
    if is_in(before, "terminated") and not (restarted or _awaits_restart(given)):
        return {"terminated": before["terminated"]}
    if isinstance(seen, Running):
        return {"running": _running(seen, {} if restarted else mapping(before.get("running")))}
    if is_in(before, "running") and not (restarted or _awaits_restart(given)):
        return {"running": before["running"]}
    return {"waiting": _waiting(given, seen)}


def _awaits_restart(given: ContainerInput) -> bool:
    """CrashLoopBackOff: waiting, with a last run, before the restart is counted."""
    seen = given.seen
    return bool(seen and isinstance(seen.state, Waiting) and seen.last_state)


def _waiting(given: ContainerInput, seen: Waiting | None) -> Status:
    reason = (seen and seen.reason) or given.waiting.reason
    message = (seen and seen.message) or given.waiting.message
    return _present(reason=reason, message=message)


def _running(seen: Running, before: Json) -> Status:
    began = timestamp(seen.started_at) if seen.started_at else before.get("startedAt")
    return _present(startedAt=began)


def _ended_state(
    given: ContainerInput, seen: Terminated, identity: str | None, before: Json
) -> Status:
    earlier = mapping(before.get("terminated"))
    if seen.exit_code is None and earlier:
        return {"terminated": before["terminated"]}
    began = earlier or mapping(before.get("running"))
    ended = _ended(seen, given.message_bytes)
    ended.setdefault("startedAt", began.get("startedAt"))
    ended.setdefault("finishedAt", earlier.get("finishedAt"))
    ended.setdefault("message", earlier.get("message"))
    return {"terminated": _present(**ended, containerID=identity)}


def _ended(seen: Terminated, message_bytes: int) -> Status:
    known = seen.exit_code is not None
    message = seen.message if known else (seen.message or seen.reason or _UNSEEN_CODE)
    return _present(
        exitCode=seen.exit_code if known else UNKNOWN_EXIT_CODE,
        reason=_ended_reason(seen),
        message=_tail(message, message_bytes),
        signal=seen.signal,
        startedAt=seen.started_at and timestamp(seen.started_at),
        finishedAt=seen.finished_at and timestamp(seen.finished_at),
    )


def _ended_reason(seen: Terminated) -> str:
    if seen.exit_code is None:
        return TerminatedReason.CONTAINER_STATUS_UNKNOWN.value
    default = TerminatedReason.ERROR if seen.exit_code else TerminatedReason.COMPLETED
    return seen.reason or default.value


def _tail(text: str | None, limit: int) -> str | None:
    """The end of a message, where the cause of a crash stands; never half a character."""
    return text and text.encode(errors="replace")[-limit:].decode(errors="ignore")


def _present(**fields: object) -> Status:
    return {name: value for name, value in fields.items() if value is not None}


def _last_state(given: ContainerInput, restarts: int) -> Status:
    if given.seen and given.seen.last_state:
        return {"terminated": _ended(given.seen.last_state, given.message_bytes)}
    before = mapping(given.before.get("state"))
    if _has_restarted(given, restarts) and is_in(before, "terminated"):
        return {"terminated": before["terminated"]}
    return dict(mapping(given.before.get("lastState")))


def _container_id(given: ContainerInput, restarts: int) -> str | None:
    """Unique per container, another one after every restart, the same at every report."""
    if given.container_id is None:
        known = given.before.get("containerID")
        return known if isinstance(known, str) else None
    own = given.seen and given.seen.container_id
    if own:
        return own if "://" in own else f"{given.container_id.partition('://')[0]}://{own}"
    return f"{given.container_id}/{restarts}" if restarts else given.container_id


def _is_ready(given: ContainerInput) -> bool:
    if given.seen is None or not isinstance(given.seen.state, Running):
        # Remembered, not seen: what the API says stands unless the backend's word denies it.
        return given.serving and given.seen is None and bool(given.before.get("ready"))
    if given.seen.ready is not None:
        return given.seen.ready and given.serving
    return given.serving and not (given.probes_run and "readinessProbe" in given.spec)


def _is_started(given: ContainerInput, *, ready: bool) -> bool:
    must_prove_it = given.probes_run and "startupProbe" in given.spec
    return ready or not must_prove_it or bool(given.before.get("started"))
