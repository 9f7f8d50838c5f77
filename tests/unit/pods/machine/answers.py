"""How each action may end: well, badly, or done without anybody hearing of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.unit.pods.machine.shell import Shell, Task, cancelled
from vk_provider.faults import (
    DeniedError,
    FieldProblem,
    OutcomeUnknownError,
    OutOfCapacityError,
    ProviderError,
    RejectedError,
)
from vk_provider.pods import actions as todo
from vk_provider.pods import stimuli as news
from vk_provider.pods.types import (
    IMPLICIT_OFFER,
    Candidate,
    Json,
    ResolvedContainer,
    ResolvedPod,
    Stamp,
    Waiting,
)

FAULTS: dict[str, type[ProviderError]] = {
    "full": OutOfCapacityError,
    "denied": DeniedError,
    "rejected": RejectedError,
    "unknown": OutcomeUnknownError,
}


def answer(shell: Shell, task: Task, outcome: str, lateness: int) -> news.Stimulus | None:
    """Carry the action out as ``outcome`` says and word its answer."""
    later = shell.now + timedelta(seconds=10)
    match task.action:
        case todo.Prepare():
            return _prepared(task.pod or {})
        case todo.WriteStatus(patch):
            return _written(shell, task, patch, outcome, later)
        case todo.CreateInstance():
            return _created(shell, task, outcome, lateness)
        case todo.DeleteInstance() | todo.DeleteExtra() as action:
            return _deleted(shell, action, outcome, later)
        case todo.CheckOrphan():
            return news.OrphanChecked(outcome in FAULTS or task.uid in shell.api.pods)
        case todo.RemovePod():
            if outcome not in ("full", "denied"):
                shell.api.remove(task.uid)
            return news.RemovalFailed(later) if outcome in FAULTS else None
    raise AssertionError(task.action)


def _prepared(pod: Json) -> news.Stimulus:
    kind = pod["metadata"]["labels"]["kind"]
    if kind == "unsupported":
        return news.Prepared(refusals=(FieldProblem("spec.hostNetwork", "not here"),))
    if kind == "incomplete":
        return news.Prepared(missing=Waiting("CreateContainerConfigError", "no such Secret"))
    stamp = Stamp("c", "burst", "ns", pod["metadata"]["name"], pod["metadata"]["uid"])
    image = pod["spec"]["containers"][0]["image"]
    container = ResolvedContainer("main", image, "spec.containers[0]")
    candidates = tuple(Candidate(name, IMPLICIT_OFFER) for name in ("a", "b"))
    return news.Prepared(ResolvedPod(stamp, pod, (container,)), candidates)


def _written(
    shell: Shell, task: Task, patch: Json, outcome: str, later: datetime
) -> news.StatusWritten:
    if outcome in ("full", "denied"):
        return news.StatusWritten(None, later)
    pod = shell.api.patch_status(task.uid, patch)
    if pod is None or outcome in FAULTS:
        return news.StatusWritten(None, later)
    return news.StatusWritten(pod)


def _created(shell: Shell, task: Task, outcome: str, lateness: int) -> news.Stimulus:
    assert isinstance(task.action, todo.CreateInstance)
    candidate, stamp = task.action.candidate, task.action.resolved.stamp
    cloud = shell.clouds[candidate.backend]
    made = outcome in ("well", "unheard")
    ref = cloud.create(stamp, shell.now, lateness) if made else None
    if task.cancelled:
        return cancelled(shell, task)
    if outcome == "well" and ref is not None:
        shell.door.succeeded(candidate.backend, candidate.offer.id)
        return news.Created(candidate.backend, ref, shell.now)
    fault = FAULTS.get(outcome, OutcomeUnknownError)("no")
    if isinstance(fault, OutOfCapacityError):
        shell.door.refused(candidate.backend, candidate.offer.id, "full", shell.steady, 0.0)
    elif isinstance(fault, DeniedError):
        shell.door.denied(candidate.backend, "denied", shell.steady, 0.0)
    else:
        shell.door.left()
    return news.CreateFailed(candidate, fault, shell.now)


def _deleted(
    shell: Shell,
    action: todo.DeleteInstance | todo.DeleteExtra,
    outcome: str,
    later: datetime,
) -> news.Stimulus:
    if outcome in ("well", "unheard"):
        shell.clouds[action.backend].delete(action.ref, shell.now)
    if outcome in ("unheard", "denied", "unknown"):
        return news.DeleteFailed("no answer", later)
    if isinstance(action, todo.DeleteExtra):  # "full": acknowledged, and ignored
        return news.ExtraDeleted(action.ref)
    return news.Deleted(shell.now, action.grace_seconds)
