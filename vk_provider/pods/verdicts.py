"""How a pod ends: from what a backend shows to a verdict, or None while it lives.

The failure rule of the design: Kubernetes recreates, we never nurse a pod back. We never restart
a container; a backend whose own kubelet restarts in place is reported as it is.
Fed by ``pods.lifecycle``; the verdicts become statuses in ``pods.status``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from vk_provider.pods import desired
from vk_provider.pods.events import FailedReason
from vk_provider.pods.types import (
    ContainerObservation,
    EndCause,
    InstancePhase,
    Json,
    Observation,
    Terminated,
    Verdict,
)

_ENDED_BY: dict[EndCause, tuple[FailedReason, str]] = {
    EndCause.LOST: (FailedReason.PROVIDER_LOST, "the backend lost the instance"),
    EndCause.PREEMPTED: (FailedReason.PREEMPTED, "the backend took the instance back"),
    EndCause.IMAGE: (FailedReason.REJECTED, "the backend can't start the image"),
}


def failed(reason: FailedReason | str, message: str) -> Verdict:
    """A Failed of ours: it carries ``DisruptionTarget``, so that a Job can ignore it."""
    return Verdict(phase="Failed", reason=str(reason), message=message, disruption=True)


def lost(backend: str | None) -> Verdict:
    """The instance vanished: complete lists agree that it is gone, and nobody ordered it."""
    where = f" {backend}" if backend else ""
    return failed(FailedReason.PROVIDER_LOST, f"the instance is gone from the backend{where}")


def overdue(pod: Json, now: datetime) -> Verdict | None:
    """``activeDeadlineSeconds``, counted from ``status.startTime`` as a kubelet does."""
    started, limit = desired.start_time(pod), desired.active_deadline_seconds(pod)
    if started is None or limit is None or now < started + timedelta(seconds=limit):
        return None
    message = "Pod was active on the node longer than the specified deadline"
    return Verdict("Failed", str(FailedReason.DEADLINE_EXCEEDED), message)


def deadline(pod: Json) -> datetime | None:
    """When :func:`overdue` will strike, for a timer."""
    started, limit = desired.start_time(pod), desired.active_deadline_seconds(pod)
    if started is None or limit is None:
        return None
    return started + timedelta(seconds=limit)


def judge(pod: Json, seen: Observation, *, restarts_in_place: bool) -> Verdict | None:
    """The pod's end as this observation shows it, or None while it lives on."""
    if seen.ended_by is not None:
        reason, default = _ENDED_BY[seen.ended_by]
        return failed(reason, seen.message or default)
    ended = seen.phase is InstancePhase.ENDED
    if restarts_in_place and not ended:
        return None
    ends = [c for c in seen.containers if isinstance(c.state, Terminated)]
    if not ends:
        return failed(FailedReason.PROVIDER_LOST, _words(seen)) if ended else None
    if restarts_in_place:
        return by_exit_codes(seen.containers)
    return _by_policy(desired.restart_policy(pod), seen.containers, ends)


def by_exit_codes(containers: Sequence[ContainerObservation]) -> Verdict:
    """A pod that is over: Succeeded if every container ended with an observed exit code of 0."""
    if containers and all(_succeeded(container) for container in containers):
        return Verdict("Succeeded")
    return Verdict("Failed")


def _by_policy(
    policy: str, containers: Sequence[ContainerObservation], ends: Sequence[ContainerObservation]
) -> Verdict | None:
    restartable = [
        c for c in ends if policy == "Always" or (policy == "OnFailure" and not _succeeded(c))
    ]
    if restartable:
        return Verdict(
            "Failed", str(FailedReason.CONTAINER_EXITED), _exit_words(restartable[0], policy)
        )
    if len(ends) < len(containers):
        return None
    return by_exit_codes(containers)


def _exit_words(container: ContainerObservation, policy: str) -> str:
    state = container.state
    code = state.exit_code if isinstance(state, Terminated) else None
    shown = "an unknown exit code" if code is None else f"exit code {code}"
    return (
        f'container "{container.name}" ended with {shown}; restartPolicy {policy} asks for a '
        "restart, which is the owner's: a new pod"
    )


def _succeeded(container: ContainerObservation) -> bool:
    return isinstance(container.state, Terminated) and container.state.exit_code == 0


def _words(seen: Observation) -> str:
    return seen.message or "the instance ended, and the backend does not say why"
