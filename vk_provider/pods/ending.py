"""The ways out: a decided end, a deletion, a vanished object, an instance nobody owns.

Common to all: the instance goes first. Failed or Succeeded is written only after the instance is
gone, or has ended where an ended one costs nothing; a pod leaves the API only after its instance
is confirmed gone. Fed by ``pods.lifecycle``.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from vk_provider.pods import desired, verdicts
from vk_provider.pods.actions import (
    Action,
    Announce,
    CancelCreate,
    CheckOrphan,
    Conclude,
    CreateInstance,
    DeleteInstance,
    Forget,
    RemovePod,
    WakeAt,
)
from vk_provider.pods.events import EventReason, FailedReason
from vk_provider.pods.room import shortened
from vk_provider.pods.slots import Existence, Record
from vk_provider.pods.stimuli import Notice
from vk_provider.pods.types import InstancePhase, Running, Terminated, Verdict
from vk_provider.pods.world import BackendFacts, World
from vk_provider.pods.writing import write

_BEHIND_THE_DOOR = (FailedReason.OUT_OF_CAPACITY, FailedReason.PREEMPTED)
"""Failures that come with a door that closes: for want of capacity, or of money."""
_MOST_PATIENCE = 6
"""An owner that exists although no watch shows it is asked for after 2, 4, ... 128 sightings."""


def conclude(record: Record, verdict: Verdict) -> list[Action]:
    """Decide the pod's end, with its one Event (and one more for a pod nobody recreates)."""
    if verdict.message is not None:
        verdict = replace(verdict, message=shortened(verdict.message))
    actions: list[Action] = []
    if verdict.reason is not None:
        actions += warn(record, "verdict", verdict.reason, verdict.message or verdict.reason)
    if verdict.phase == "Failed" and not desired.has_controller(record.pod or {}):
        message = "no controller owns this pod, so nothing will recreate it"
        actions += warn(record, "not-recreated", EventReason.NOT_RECREATED, message)
    return [*actions, Conclude(verdict)]


def warn(record: Record, key: str, reason: str, message: str) -> list[Action]:
    """A Warning Event, unless this one was emitted before."""
    if key in record.announced:
        return []
    return [Announce(key, Notice("Warning", str(reason), message))]


def ending(record: Record, world: World) -> list[Action]:
    """Order the instance's end, show what is observed meanwhile, then write the verdict."""
    assert record.verdict is not None
    assert record.verdict_at is not None
    granted = record.delete_grace if record.deleted_at is not None else _grace(record)
    deadline = record.verdict_at + timedelta(seconds=world.limits.confirm_deadline + granted)
    if _over(record, world):
        return _write_verdict(record, record.verdict, world, deadline)
    if world.now >= deadline:
        end = _end_instance(record, world, 0, keep_logs=True)
        return [*_write_verdict(record, record.verdict, world, deadline), *end]
    actions = _end_instance(record, world, _grace(record), keep_logs=True)
    if desired.is_ready(record.pod or {}) or _saw_an_end(record):
        actions += write(record, world, ending=True)  # no traffic to what is being cleared away
    return [*actions, WakeAt(deadline)]


def lost(record: Record, world: World) -> list[Action]:
    """Confirmed absence of an instance that nobody ordered to end."""
    return conclude(record, verdicts.lost(record.backend))


def terminating(record: Record, world: World) -> list[Action]:
    """A graceful delete: the instance ends within its grace, the last status, then the object."""
    assert record.pod is not None
    if record.may_exist or record.in_flight is not None:
        grace = desired.grace_seconds(record.pod)
        actions = _end_instance(record, world, grace, keep_logs=True)
        return [*actions, *_lingering(record, world)]
    if not desired.is_terminal(record.pod) and _ran(record):
        return write(record, world, verdict=record.verdict or _final(record))
    if record.removing:
        return []
    if record.not_before is not None and world.now < record.not_before:
        return [WakeAt(record.not_before)]
    return [RemovePod()]


def terminated(record: Record, world: World) -> list[Action]:
    """The phase is final; an instance that is still there is a debt, and is paid. Where the
    verdict could be written first, its containers' last words follow."""
    actions: list[Action] = []
    if record.may_exist or record.in_flight is not None:
        actions = _end_instance(record, world, 0, keep_logs=True)
    return [*actions, *write(record, world)] if record.logs else actions


def reaping(record: Record, world: World) -> list[Action]:
    """The object was removed (force delete, a lost node): end what it had, then forget it."""
    if record.may_exist or record.in_flight is not None:
        return _end_instance(record, world, 0)
    if record.extras or record.preparing or record.writing or record.checking:
        return []
    return [Forget()]


def orphaned(record: Record, world: World) -> list[Action]:
    """An instance without a pod: believed only on the second sweep, after the pod cache is
    complete, and after the API server was asked for the owner by name."""
    if not record.may_exist and not record.extras:
        busy = record.in_flight is not None or record.checking
        return [] if busy else [Forget()]
    if record.orphan:
        return _end_instance(record, world, 0)
    needed = 2 << min(record.checks, _MOST_PATIENCE)
    if record.stamp is None or record.checking or not world.synced or record.sightings < needed:
        return []
    return [CheckOrphan(record.stamp)]


def stranded(record: Record, world: World) -> list[Action]:
    """No list will ever tell about an instance whose backend is not configured any more: a person
    must, and is told so."""
    if not record.may_exist or record.backend in world.facts:
        return []
    message = (
        f'backend "{record.backend}", where this pod may have an instance, is not configured on '
        "this node; configure it again, or make sure that it is gone and force-delete the pod"
    )
    return warn(record, "stranded", EventReason.FAILED_KILL_POD, message)


def _over(record: Record, world: World) -> bool:
    """Nothing runs and nothing is billed any more."""
    if record.in_flight is not None:
        return False
    if not record.may_exist:
        return True
    facts = world.facts.get(record.backend or "", BackendFacts())
    seen = record.observation
    return facts.ended_is_free and seen is not None and seen.phase is InstancePhase.ENDED


def _write_verdict(
    record: Record, verdict: Verdict, world: World, deadline: datetime
) -> list[Action]:
    """Close the door, pace the verdicts, *then* mark Failed: the replacement comes at once."""
    is_shown = world.door_published or world.now >= deadline
    if verdict.reason in _BEHIND_THE_DOOR and not is_shown:
        return [WakeAt(deadline)]
    return write(record, world, verdict=verdict)


def _end_instance(
    record: Record, world: World, grace_seconds: int, *, keep_logs: bool = False
) -> list[Action]:
    """One order at a time; given again when it failed, outlived its grace or got shorter."""
    if isinstance(record.in_flight, CreateInstance):
        return [] if record.cancelling else [CancelCreate()]
    if record.in_flight is not None:
        return []
    if record.ref is None or record.backend is None or record.exists is not Existence.PRESENT:
        return stranded(record, world)
    if record.not_before is not None and world.now < record.not_before:
        return [*_refused(record), WakeAt(record.not_before)]
    if record.deleted_at is not None and grace_seconds >= record.delete_grace:
        return []
    is_first = record.deleted_at is None and not record.logs
    order = DeleteInstance(record.backend, record.ref, grace_seconds, keep_logs and is_first)
    return [*_outlived(record), order]


def _lingering(record: Record, world: World) -> list[Action]:
    """An order that was taken is followed in time, or people are told what the pod waits for."""
    if record.deleted_at is None or record.ref is None:
        return []
    patience = timedelta(seconds=record.delete_grace + world.limits.confirm_deadline)
    if world.now < record.deleted_at + patience:
        return [WakeAt(record.deleted_at + patience)]
    message = (
        f"backend {record.backend} took the order to end instance {record.ref.id}, but for longer "
        "than its grace period and confirmDeadlineSeconds has not shown that it is gone"
    )
    return warn(record, "lingering", EventReason.FAILED_KILL_POD, message)


def _refused(record: Record) -> list[Action]:
    if record.delete_problem is None or record.pod is None:
        return []
    message = f"backend {record.backend} did not take the order to end it: {record.delete_problem}"
    return warn(record, "kill", EventReason.FAILED_KILL_POD, message)


def _outlived(record: Record) -> list[Action]:
    if not record.outlived or record.pod is None or record.ref is None:
        return []
    message = (
        f"backend {record.backend} acknowledged the end of instance {record.ref.id}, but still "
        "runs it; it is ordered again"
    )
    return warn(record, "outlived", EventReason.FAILED_KILL_POD, message)


def _grace(record: Record) -> int:
    """Where no container runs any more, none is needed."""
    seen = record.observation
    if record.pod is None or seen is None or seen.phase is not InstancePhase.RUNNING:
        return 0
    if not any(isinstance(container.state, Running) for container in seen.containers):
        return 0
    return desired.grace_seconds(record.pod)


def _saw_an_end(record: Record) -> bool:
    """Whether a container was seen to end: that is told, however long the instance takes to go."""
    seen = record.observation
    containers = (*seen.init_containers, *seen.containers) if seen is not None else ()
    return any(isinstance(container.state, Terminated) for container in containers)


def _ran(record: Record) -> bool:
    return record.existed or (record.pod is not None and desired.has_started(record.pod))


def _final(record: Record) -> Verdict:
    """What a pod that was deleted ended as: only ends that were observed make it Succeeded."""
    seen = record.observation
    if record.pod is None or seen is None:
        return Verdict("Failed")
    return verdicts.end_of(record.pod, seen)
