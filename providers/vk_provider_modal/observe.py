"""One sandbox as an Observation: what is known to be true, and nothing else.

Modal's numbers lie: the exit code of a sandbox that ran out of memory or never started reads 0
where the service left it unset. So the status decides, and a code is passed on only where it is
the container's own. A sandbox lives for 24 hours at most; shortly before that it is shown as
taken back, so that its pod ends with a reason and is replaced in good order.
Pure. Fed by ``provider`` with what ``memory`` knows; feeds the core.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from vk_provider.pods.types import (
    ContainerObservation,
    ContainerState,
    EndCause,
    InstancePhase,
    InstanceRef,
    Observation,
    Running,
    Terminated,
    Waiting,
)
from vk_provider_modal.facts import Result, Sandbox
from vk_provider_modal.stamp import Mark

ENDPOINT = "vk-provider.dev/endpoint-"
ENDS_AT = "vk-provider.dev/ends-at"
OOM_EXIT_CODE = 137
_OWN_ENDS = ("SUCCESS", "FAILURE")
_OOM = "KERNEL_OOM_KILL"
_PREEMPTED = re.compile(r"preempt", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Ending:
    """What an end means for the container and for the instance."""

    state: Terminated | None
    cause: EndCause | None = None
    message: str | None = None


def observe(sandbox: Sandbox, mark: Mark, now: datetime, margin_seconds: int) -> Observation:
    """The instance as the core's value. Equal as long as nothing has changed."""
    status = sandbox.result.status
    is_due = not status and bool(sandbox.started_at) and now >= _due(sandbox, mark, margin_seconds)
    phase = _phase(sandbox, is_due)
    ending = _ending(sandbox, is_due) if phase is InstancePhase.ENDED else Ending(None)
    is_running = phase is InstancePhase.RUNNING
    return Observation(
        stamp=mark.stamp,
        ref=InstanceRef(sandbox.id),
        phase=phase,
        containers=_containers(sandbox, mark, phase, ending),
        ended_by=ending.cause,
        reason=("Expiring" if is_due else status) or None,
        message=_message(phase, status, ending),
        created_at=_moment(sandbox.created_at),
        gpu_type=mark.gpu_type,
        data_center=mark.region,
        usd_per_hour=None if status else mark.usd_per_hour,
        annotations=dict(_annotations(sandbox)) if is_running else {},
    )


def is_known(status: str) -> bool:
    """Whether a result's status is one that this provider understands."""
    return status in ("", *_OWN_ENDS, _OOM, *_ENDINGS)


def own_exit_code(result: Result) -> int | None:
    """The code that the container itself ended with, None where the service made it up."""
    return result.exit_code if result.status in _OWN_ENDS else None


def is_gone(result: Result) -> bool:
    """Whether a sandbox was taken away, by us or by a person, and nothing of it is left."""
    return result.status == "TERMINATED" and not _PREEMPTED.search(result.message)


def ends_at(sandbox: Sandbox) -> datetime | None:
    """When Modal ends it, None where it hasn't started or the limit is unknown."""
    if not sandbox.started_at or not sandbox.timeout_seconds:
        return None
    return _moment(sandbox.started_at + sandbox.timeout_seconds)


def _due(sandbox: Sandbox, mark: Mark, margin_seconds: int) -> datetime:
    end = ends_at(sandbox)
    if end is None:
        return datetime.max.replace(tzinfo=UTC)
    # Spread over as much again, so that replicas of one age don't all roll at once.
    share = zlib.crc32(mark.stamp.pod_uid.encode()) / 2**32
    early = min(margin_seconds * (1 + share), sandbox.timeout_seconds / 2)
    return datetime.fromtimestamp(end.timestamp() - early, UTC)


def _phase(sandbox: Sandbox, is_due: bool) -> InstancePhase:
    status = sandbox.result.status
    if not is_known(status):
        return InstancePhase.UNKNOWN
    if status or is_due:
        return InstancePhase.ENDED
    return InstancePhase.RUNNING if sandbox.started_at else InstancePhase.STARTING


def _containers(
    sandbox: Sandbox, mark: Mark, phase: InstancePhase, ending: Ending
) -> tuple[ContainerObservation, ...]:
    state: ContainerState | None = ending.state
    if phase is InstancePhase.STARTING:
        state = Waiting()
    elif phase is InstancePhase.RUNNING:
        state = Running(_moment(sandbox.started_at))
    return () if state is None else (ContainerObservation(mark.container, state),)


def _ending(sandbox: Sandbox, is_due: bool) -> Ending:
    result, started = sandbox.result, _moment(sandbox.started_at)
    if is_due:
        return _expiring(sandbox, started)
    if result.status in _OWN_ENDS:
        code = result.exit_code
        reason = "Completed" if code == 0 else "Error"
        return Ending(Terminated(code, reason, result.message or None, started_at=started))
    if result.status == _OOM:
        # The kernel kills with SIGKILL; the field is 0 where the service leaves it unset.
        code = result.exit_code or OOM_EXIT_CODE
        return Ending(Terminated(code, "OOMKilled", result.message or None, started_at=started))
    cause, words = _ENDINGS[result.status]
    if cause is EndCause.LOST and _PREEMPTED.search(result.message):
        cause = EndCause.PREEMPTED
    told = f"{words}: {result.message}" if result.message else words
    unknown = Terminated(None, "ContainerStatusUnknown", told, started_at=started)
    return Ending(unknown if started else None, cause, told)


_ENDINGS: dict[str, tuple[EndCause, str]] = {
    "TIMEOUT": (EndCause.PREEMPTED, "Modal ended the sandbox at its time limit"),
    "TERMINATED": (EndCause.LOST, "Modal ended the sandbox"),
    "INIT_FAILURE": (EndCause.IMAGE, "the container could not be started"),
    "INTERNAL_FAILURE": (EndCause.LOST, "Modal failed"),
    "IDLE_TIMEOUT": (EndCause.LOST, "Modal ended the sandbox because it was idle"),
    "MEMORY_MANAGER_EVICTION": (EndCause.LOST, "Modal evicted the sandbox for its use of memory"),
    "MEMORY_THRASHING_EVICTION": (EndCause.LOST, "Modal evicted the sandbox for thrashing"),
}


def _expiring(sandbox: Sandbox, started: datetime | None) -> Ending:
    end = ends_at(sandbox)
    limit = f"{sandbox.timeout_seconds / 3600:g} h"
    told = f"Modal ends a sandbox after {limit}, which is at {_text(end)}; replaced before that"
    state = Terminated(None, "ContainerStatusUnknown", told, started_at=started)
    return Ending(state, EndCause.PREEMPTED, told)


def _message(phase: InstancePhase, status: str, ending: Ending) -> str | None:
    if phase is InstancePhase.UNKNOWN:
        return f'Modal shows the status "{status}", which is not a known one'
    return ending.message


def _annotations(sandbox: Sandbox) -> Iterator[tuple[str, str]]:
    end = ends_at(sandbox)
    if end is not None:
        yield ENDS_AT, _text(end)
    for port, address in sorted(sandbox.tunnels.items()):
        yield f"{ENDPOINT}{port}", address


def _text(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _moment(seconds: float) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
