"""How a pod ends: from what a backend shows to a verdict, or None while it lives.

The failure rule of the design: Kubernetes recreates, we never nurse a pod back. We never restart
a container; a backend whose own kubelet restarts in place is reported as it is.
Fed by ``pods.lifecycle``; the verdicts become statuses in ``pods.status``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from vk_provider.pods import desired
from vk_provider.pods.container_facts import is_sidecar
from vk_provider.pods.events import FailedReason
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import (
    ContainerObservation,
    EndCause,
    InstancePhase,
    Json,
    Observation,
    Terminated,
    Verdict,
)

_KILLING = timedelta(seconds=60)
"""What a backend may take beyond the grace, to kill what did not stop and to say so."""
_ENDED_BY: dict[EndCause, tuple[FailedReason, str]] = {
    EndCause.LOST: (FailedReason.PROVIDER_LOST, "the backend lost the instance"),
    EndCause.PREEMPTED: (FailedReason.PREEMPTED, "the backend took the instance back"),
    EndCause.IMAGE: (FailedReason.REJECTED, "the backend can't start the image"),
    EndCause.REFUSED: (FailedReason.REJECTED, "the backend does not take the pod"),
}


def failed(reason: FailedReason | str, message: str) -> Verdict:
    """A Failed of ours: it carries ``DisruptionTarget``, so that a Job can ignore it."""
    return Verdict(phase="Failed", reason=str(reason), message=message, disruption=True)


def lost(backend: str | None) -> Verdict:
    """The instance vanished: complete lists agree that it is gone, and nobody ordered it."""
    where = f" {backend}" if backend else ""
    return failed(FailedReason.PROVIDER_LOST, f"the instance is gone from the backend{where}")


def withdrawn(pod: Json, since: datetime | None, now: datetime) -> Verdict | None:
    """Somebody else ends the instance, and longer than its grace it does not go: where its machine
    has died nobody confirms it, and meanwhile the pod would serve nobody and be replaced by
    nobody."""
    if since is None or now < leaves_by(pod, since):
        return None
    message = "the backend has been ending the instance for longer than the pod's grace period"
    return failed(FailedReason.PROVIDER_LOST, message)


def leaves_by(pod: Json, since: datetime) -> datetime:
    """When an instance that is on its way out should be gone, or its end be told: what had to be
    killed at the end of its grace has a better reason than that it lingers."""
    return since + timedelta(seconds=desired.grace_seconds(pod)) + _KILLING


def given_up(backend: str, silence: float, limit: float | None) -> Verdict | None:
    """The opt-in end of a pod whose backend has been silent for ``limit`` seconds."""
    if limit is None or silence < limit:
        return None
    message = f"the backend {backend} has given no list for {silence:.0f} s"
    return failed(FailedReason.PROVIDER_LOST, message)


def unstarted(due: datetime | None, now: datetime) -> Verdict | None:
    """The opt-in end of an instance that does not run when it should: a pull may hang without a
    word, billed, and elsewhere it may go well."""
    if due is None or now < due:
        return None
    message = "the instance has not started within startDeadlineSeconds"
    return failed(FailedReason.PROVIDER_LOST, message)


def dismissed(why: str) -> Verdict | None:
    """A cap of the budget holds by instances that end; ``why`` is empty for those that stay."""
    return failed(FailedReason.PREEMPTED, f"ended to keep the budget: {why}") if why else None


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
        if seen.ended_by is EndCause.REFUSED and seen.reason:
            return failed(seen.reason, seen.message or default)  # a kubelet's own word for it
        return failed(reason, seen.message or default)
    ended = seen.phase is InstancePhase.ENDED
    if restarts_in_place and not ended:
        return None
    if not _ends(seen.containers) and not _failures(_inits(pod, seen)):
        return failed(FailedReason.PROVIDER_LOST, _words(seen)) if ended else None
    if restarts_in_place:
        return end_of(pod, seen)
    return _by_policy(pod, seen)


def end_of(pod: Json, seen: Observation) -> Verdict:
    """The phase of a pod that is over; a container that was not observed to end is no success."""
    if _unseen(pod, seen) or _failures(_inits(pod, seen)):
        return Verdict("Failed")
    return by_exit_codes(seen.containers)


def by_exit_codes(containers: Sequence[ContainerObservation]) -> Verdict:
    """A pod that is over: Succeeded if every container ended with an observed exit code of 0."""
    if containers and all(_succeeded(container) for container in containers):
        return Verdict("Succeeded")
    return Verdict("Failed")


def _by_policy(pod: Json, seen: Observation) -> Verdict | None:
    policy, ends = desired.restart_policy(pod), _ends(seen.containers)
    failures = _failures([*_inits(pod, seen), *ends])
    restartable = {"Always": [*failures, *ends], "OnFailure": failures}.get(policy, [])
    runs_on = len(ends) < len(seen.containers) or bool(_unseen(pod, seen))
    if restartable:
        return _exited(restartable[0], policy)
    if runs_on and (sidecars := _ends(_inits(pod, seen, sidecars=True))):
        return _exited(sidecars[0], "Always")  # a sidecar is always restarted, while others run
    over = seen.phase is InstancePhase.ENDED or not runs_on or bool(_failures(_inits(pod, seen)))
    return end_of(pod, seen) if over else None


def _inits(pod: Json, seen: Observation, *, sidecars: bool = False) -> list[ContainerObservation]:
    specs = mappings(mapping(pod, "spec"), "initContainers")
    wanted = {text(spec, "name") for _, spec in specs if is_sidecar(spec) == sidecars}
    return [container for container in seen.init_containers if container.name in wanted]


def _unseen(pod: Json, seen: Observation) -> set[str]:
    """Containers of the spec that the observation does not mention."""
    specs = mappings(mapping(pod, "spec"), "containers")
    return {text(spec, "name") for _, spec in specs} - {one.name for one in seen.containers}


def _ends(containers: Iterable[ContainerObservation]) -> list[ContainerObservation]:
    return [container for container in containers if isinstance(container.state, Terminated)]


def _failures(containers: Iterable[ContainerObservation]) -> list[ContainerObservation]:
    return [container for container in _ends(containers) if not _succeeded(container)]


def _exited(container: ContainerObservation, policy: str) -> Verdict:
    state = container.state
    code = state.exit_code if isinstance(state, Terminated) else None
    shown = "an unknown exit code" if code is None else f"exit code {code}"
    message = (
        f'container "{container.name}" ended with {shown}; restartPolicy {policy} asks for a '
        "restart, which is the owner's: a new pod"
    )
    return Verdict("Failed", str(FailedReason.CONTAINER_EXITED), message)


def _succeeded(container: ContainerObservation) -> bool:
    return isinstance(container.state, Terminated) and container.state.exit_code == 0


def _words(seen: Observation) -> str:
    return seen.message or "the instance ended, and the backend does not say why"
