"""The ways out: a decided end, a deletion, a vanished object, an instance nobody owns.

Common to all: the instance goes first. Failed or Succeeded is written only after the instance is
gone, or has ended where an ended one costs nothing; a pod leaves the API only after its instance
is confirmed gone. Fed by ``pods.lifecycle``.
"""

from __future__ import annotations

from datetime import timedelta

from vk_provider.pods import desired, verdicts
from vk_provider.pods.actions import (
    Action,
    Announce,
    CancelCreate,
    CheckOrphan,
    Conclude,
    CreateInstance,
    DeleteExtra,
    DeleteInstance,
    Forget,
    RemovePod,
    WakeAt,
)
from vk_provider.pods.events import EventReason, FailedReason
from vk_provider.pods.record import Existence, Record
from vk_provider.pods.stimuli import Notice
from vk_provider.pods.types import InstancePhase, Terminated, Verdict
from vk_provider.pods.verdicts import by_exit_codes
from vk_provider.pods.verdicts import lost as lost_verdict
from vk_provider.pods.world import BackendFacts, World
from vk_provider.pods.writing import write


def conclude(record: Record, verdict: Verdict) -> list[Action]:
    """Decide the pod's end, with its one Event (and one more for a pod nobody recreates)."""
    actions: list[Action] = []
    if verdict.reason is not None:
        notice = Notice("Warning", verdict.reason, verdict.message or verdict.reason)
        actions.append(Announce("verdict", notice))
    if verdict.phase == "Failed" and record.pod and not desired.has_controller(record.pod):
        message = "no controller owns this pod, so nothing will recreate it"
        actions.append(Announce("not-recreated", _warning(EventReason.NOT_RECREATED, message)))
    return [*actions, Conclude(verdict)]


def ending(record: Record, world: World) -> list[Action]:
    """Order the instance's end, show what is observed meanwhile, then write the verdict."""
    assert record.verdict is not None
    assert record.verdict_at is not None
    if _over(record, world):
        return _write_verdict(record, world)
    deadline = record.verdict_at + timedelta(seconds=world.limits.confirm_deadline)
    if world.now >= deadline:
        return [*_write_verdict(record, world), *_end_instance(record, world, 0)]
    actions = _end_instance(record, world, _grace(record), keep_logs=True)
    if desired.is_ready(record.pod or {}) and record.observation is not None:
        actions += write(record, world)  # no traffic to a dead container while it is cleared away
    return [*actions, WakeAt(deadline)]


def lost(record: Record, world: World) -> list[Action]:
    """Confirmed absence of an instance that nobody ordered to end."""
    return conclude(record, lost_verdict(record.backend))


def terminating(record: Record, world: World) -> list[Action]:
    """A graceful delete: the instance ends within its grace, the last status, then the object."""
    assert record.pod is not None
    if record.exists in _MAY_EXIST or record.in_flight is not None:
        grace = desired.grace_seconds(record.pod)
        return _end_instance(record, world, grace, keep_logs=True)
    if not desired.is_terminal(record.pod) and _ran(record):
        last = write(record, world, verdict=record.verdict or _final(record))
        if last or record.writing:
            return last
    if record.removing:
        return []
    if record.not_before is not None and world.now < record.not_before:
        return [WakeAt(record.not_before)]
    return [RemovePod()]


def terminated(record: Record, world: World) -> list[Action]:
    """The phase is final; an instance that is still there is a debt, and is paid."""
    if record.exists in _MAY_EXIST or record.in_flight is not None:
        return _end_instance(record, world, 0)
    return []


def reaping(record: Record, world: World) -> list[Action]:
    """The object was removed (force delete, a lost node): end what it had, then forget it."""
    if record.exists in _MAY_EXIST or record.in_flight is not None:
        return _end_instance(record, world, 0)
    if record.preparing or record.writing or record.checking:
        return []
    return [Forget()]


def orphaned(record: Record, world: World) -> list[Action]:
    """An instance without a pod: believed only on the second sweep, after the pod cache is
    complete, and after the API server was asked for the owner by name."""
    if record.exists not in _MAY_EXIST:
        return [] if record.in_flight is not None else [Forget()]
    if record.orphan:
        return _end_instance(record, world, 0)
    if record.stamp is None or record.checking or not world.synced or record.sightings < 2:
        return []
    return [CheckOrphan(record.stamp)]


_MAY_EXIST = (Existence.PRESENT, Existence.UNKNOWN)


def _over(record: Record, world: World) -> bool:
    """Nothing runs and nothing is billed any more."""
    if record.in_flight is not None:
        return False
    if record.exists not in _MAY_EXIST:
        return True
    facts = world.facts.get(record.backend or "", BackendFacts())
    seen = record.observation
    return facts.ended_is_free and seen is not None and seen.phase is InstancePhase.ENDED


def _write_verdict(record: Record, world: World) -> list[Action]:
    """Close the door, pace the verdicts, *then* mark Failed: the replacement comes at once."""
    assert record.verdict is not None
    if record.verdict.reason == FailedReason.OUT_OF_CAPACITY and not world.door_published:
        return []
    return write(record, world, verdict=record.verdict)


def _end_instance(
    record: Record, world: World, grace_seconds: int, *, keep_logs: bool = False
) -> list[Action]:
    """One order at a time; given again when it failed, outlived its grace or got shorter."""
    if isinstance(record.in_flight, CreateInstance):
        return [] if record.cancelling else [CancelCreate()]
    if record.in_flight is not None or record.ref is None or record.backend is None:
        return []
    if record.not_before is not None and world.now < record.not_before:
        return [WakeAt(record.not_before)]
    if record.extras:
        return [DeleteExtra(record.backend, record.extras[0])]
    if record.deleted_at is not None and grace_seconds >= record.delete_grace:
        return []
    return [DeleteInstance(record.backend, record.ref, grace_seconds, keep_logs)]


def _grace(record: Record) -> int:
    """A container that ended by itself needs none."""
    seen = record.observation
    if record.pod is None or seen is None or seen.phase is not InstancePhase.RUNNING:
        return 0
    if any(isinstance(container.state, Terminated) for container in seen.containers):
        return 0
    return desired.grace_seconds(record.pod)


def _ran(record: Record) -> bool:
    return record.existed or (record.pod is not None and desired.has_started(record.pod))


def _final(record: Record) -> Verdict:
    seen = record.observation
    return by_exit_codes(seen.containers) if seen is not None else verdicts.Verdict("Failed")


def _warning(reason: str, message: str) -> Notice:
    return Notice("Warning", reason, message)
