"""The way of a pod without an instance to its create call: a row of gates, passed in order.

Each gate lets the pod through (None) or says what to do instead. Only the last one creates.
Fed by ``pods.lifecycle`` (state New).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from vk_provider.pods import desired, names, verdicts
from vk_provider.pods.actions import (
    Action,
    Announce,
    CreateInstance,
    Enter,
    Prepare,
    ReportShortage,
    Retry,
    WakeAt,
)
from vk_provider.pods.ending import conclude, warn
from vk_provider.pods.events import EventReason, FailedReason, WaitingReason
from vk_provider.pods.room import MOST_ANNOTATION_BYTES, missing_bytes
from vk_provider.pods.slots import Record
from vk_provider.pods.stimuli import Prepared
from vk_provider.pods.types import Candidate, Json, Placement, PlacementHints, Waiting
from vk_provider.pods.world import BackendFacts, World
from vk_provider.pods.writing import write

_LABELS_ARRIVE = timedelta(seconds=2)
"""A pod that waited for a label of the node may reach us before the label does."""


def starting(record: Record, world: World) -> list[Action]:
    """Pass the gates in order; the first that stops the pod speaks."""
    assert record.pod is not None
    for gate in _GATES:
        actions = gate(record, record.pod, world)
        if actions is not None:
            return actions
    return _create(record, record.pod, world)


def _daemon_set(record: Record, pod: Json, world: World) -> list[Action] | None:
    """DaemonSet pods wait for ever: failing them would only make their controller loop."""
    if not desired.is_daemonset(pod):
        return None
    message = "pods of a DaemonSet are not run on a virtual node; keep them off by affinity"
    return _wait(record, world, WaitingReason.DAEMON_SET_NOT_SUPPORTED, message, announced=True)


def _overdue(record: Record, pod: Json, world: World) -> list[Action] | None:
    verdict = verdicts.overdue(pod, world.now)
    return conclude(record, verdict) if verdict is not None else None


def _held(record: Record, pod: Json, world: World) -> list[Action] | None:
    """The storm guard: an owner whose pods keep failing waits for its next token."""
    until = world.held_until()
    if until is None:
        return None
    message = "earlier pods of the same owner failed here; waiting before the next try"
    actions = _wait(record, world, WaitingReason.CREATE_BACK_OFF, message)
    event = warn(record, "back-off", EventReason.BACK_OFF, message)
    return [*actions, *event, WakeAt(until)]


def _admission(record: Record, pod: Json, world: World) -> list[Action] | None:
    """``spec.nodeName`` bypasses the scheduler, and so the cost cap: we admit again. Once: from
    its preparation on the pod holds its share of the node's capacity."""
    if record.preparing or record.prepared is not None:
        return None
    refusal = world.refusal(pod)
    if refusal is None:
        return None
    sure_at = record.first_seen + _LABELS_ARRIVE
    if refusal.reason == FailedReason.NODE_AFFINITY and world.now < sure_at:
        return [WakeAt(sure_at)]
    return conclude(record, verdicts.failed(refusal.reason, refusal.message))


def _door(record: Record, pod: Json, world: World) -> list[Action] | None:
    if world.door_closed is None:
        return None
    return _no_room(record, pod, world, f"the node's door is closed: {world.door_closed}")


def _preparation(record: Record, pod: Json, world: World) -> list[Action] | None:
    if record.preparing:
        return []
    return [Prepare()] if record.prepared is None else None


def _references(record: Record, pod: Json, world: World) -> list[Action] | None:
    """As a kubelet: a missing ConfigMap or Secret is waited for, never a failure."""
    prepared = _ready(record)
    actions: list[Action] = [
        Announce(key, notice)
        for key, notice in {f"{one.reason}/{one.message}": one for one in prepared.notices}.items()
        if key not in record.announced
    ]
    if actions:
        return actions
    if prepared.missing is None:
        return None
    return write(record, world, waiting=prepared.missing)


def _translation(record: Record, pod: Json, world: World) -> list[Action] | None:
    prepared = _ready(record)
    if prepared.candidates or not prepared.refusals:
        return None
    message = "; ".join(str(problem) for problem in prepared.refusals)
    return conclude(record, verdicts.failed(FailedReason.UNSUPPORTED, message))


def _capacity(record: Record, pod: Json, world: World) -> list[Action] | None:
    """Some candidate must be left that is neither tried, refused nor cooled down."""
    prepared = _ready(record)
    if _next(record, world) is not None:
        return None
    hopeful = [c for c in prepared.candidates if c not in record.rejected]
    if record.refusals and not hopeful:
        message = "; ".join(record.refusals)
        return conclude(record, verdicts.failed(FailedReason.REJECTED, message))
    message = record.words or prepared.shortage or world.over_budget(hopeful)
    message = message or "every offer for it is cooling down"
    if record.short_at is None:
        backends = tuple(sorted({c.backend for c in hopeful}))
        report = ReportShortage(backends, message, _is_default_need(pod, prepared), world.now)
        return [report, *_no_room(record, pod, world, message)]
    again = record.short_at + timedelta(seconds=world.limits.recheck)
    is_worth_it = not hopeful or not all(map(world.cooled, hopeful))
    if world.now >= again and is_worth_it and _waits(record, world):
        return [Retry()]
    return _no_room(record, pod, world, message)


def _is_default_need(pod: Json, prepared: Prepared) -> bool:
    """A pod without wishes that asks for no more than one GPU: if it finds nothing, nobody does."""
    gpus = prepared.resolved.gpu_count if prepared.resolved is not None else 0
    return gpus <= 1 and desired.hints(pod)[0] == PlacementHints()


def _headroom(record: Record, pod: Json, world: World) -> list[Action] | None:
    """A half-open door lets in one, then two, then four; the others wait outside."""
    if world.headroom is None or world.headroom > 0:
        return None
    message = "the node's door is reopening, one pod after another"
    wait = _wait(record, world, WaitingReason.PROVIDER_UNAVAILABLE, message)
    return [*wait, WakeAt(world.now + timedelta(seconds=world.limits.recheck))]


def _intent(record: Record, pod: Json, world: World) -> list[Action] | None:
    """The choice is written to the pod, and acknowledged, before the create call."""
    candidate = _next(record, world)
    assert candidate is not None
    placement = _placement(record, candidate)
    if desired.placement(pod) == placement:
        return None
    note = desired.render_placement(placement)
    if missing := missing_bytes(pod, {names.PLACEMENT: note}):
        message = (
            f"metadata.annotations: the note of where the pod runs ({names.PLACEMENT}) does not "
            f"fit beside them: {missing} bytes too many, allowed: {MOST_ANNOTATION_BYTES}"
        )
        return conclude(record, verdicts.failed(FailedReason.UNSUPPORTED, message))
    return write(record, world, placement=placement)


def _placement(record: Record, candidate: Candidate) -> Placement:
    offer = candidate.offer
    return Placement(
        record.uid,
        candidate.backend,
        offer.id,
        why=candidate.reason,
        gpu_type=offer.gpu_type,
        data_center=offer.data_center,
        usd_per_hour=offer.usd_per_hour,
    )


_GATES: tuple[Callable[[Record, Json, World], list[Action] | None], ...] = (
    _daemon_set,
    _overdue,
    _held,
    _admission,
    _door,
    _preparation,
    _references,
    _translation,
    _capacity,
    _headroom,
    _intent,
)


def _create(record: Record, pod: Json, world: World) -> list[Action]:
    candidate, resolved = _next(record, world), _ready(record).resolved
    assert candidate is not None
    assert resolved is not None
    facts = world.facts.get(candidate.backend, BackendFacts())
    actions: list[Action] = [Enter(), CreateInstance(resolved, candidate)]
    if desired.has_probes(pod) and not facts.runs_probes:
        message = "probes are not run for this pod; Ready follows the container's running state"
        actions = [*warn(record, "probes", EventReason.PROBES_NOT_RUN, message), *actions]
    return actions


def _ready(record: Record) -> Prepared:
    assert record.prepared is not None
    return record.prepared


def _next(record: Record, world: World) -> Candidate | None:
    spent = record.tried | record.rejected
    for candidate in _ready(record).candidates:
        if candidate not in spent and not world.cooled(candidate):
            return candidate
    return None


def _no_room(record: Record, pod: Json, world: World, message: str) -> list[Action]:
    """Failed, so that it can go home; a Job's pod that would count it waits for its deadline."""
    if not _waits(record, world):
        return conclude(record, verdicts.failed(FailedReason.OUT_OF_CAPACITY, message))
    wait = _wait(record, world, WaitingReason.PROVIDER_UNAVAILABLE, message)
    again = world.now + timedelta(seconds=world.limits.recheck)
    return [*wait, WakeAt(min(again, _pending_deadline(record, world)))]


def _waits(record: Record, world: World) -> bool:
    pod = record.pod
    assert pod is not None
    return desired.is_job_that_cannot_ignore(pod) and world.now < _pending_deadline(record, world)


def _pending_deadline(record: Record, world: World) -> datetime:
    begun = desired.start_time(record.pod or {}) or record.first_seen
    return begun + timedelta(seconds=world.limits.pending_deadline)


def _wait(
    record: Record, world: World, reason: WaitingReason, message: str, *, announced: bool = False
) -> list[Action]:
    actions = write(record, world, waiting=Waiting(str(reason), message))
    return [*warn(record, str(reason), reason, message), *actions] if announced else actions
