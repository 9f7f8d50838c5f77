"""The life of one pod as a table: ``state`` names the situation, one rule per state decides.

Theory of operation. A record holds facts (desired, observed, in flight). ``decide`` looks at the
facts alone, never at what changed, so it may be called at any time, any number of times: deciding
twice without news adds nothing, because an action that has begun fills its slot. At most one
action against the backend is in flight per pod. A terminal phase is never left; an instance is
never made while another may exist; nothing is deleted that does not carry the pod's own stamp.

Fed by ``loops.pod_workers`` with a record and the world; its actions go back there.
Read next: ``starting`` (pods without an instance), ``ending`` (pods on their way out).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum

from vk_provider.faults import InvalidTransitionError
from vk_provider.pods import desired, verdicts
from vk_provider.pods.actions import Action, CreateInstance, DeleteExtra, WakeAt
from vk_provider.pods.ending import (
    conclude,
    ending,
    lost,
    orphaned,
    reaping,
    stranded,
    terminated,
    terminating,
)
from vk_provider.pods.slots import Existence, Record
from vk_provider.pods.starting import starting
from vk_provider.pods.types import InstancePhase, Verdict
from vk_provider.pods.world import BackendFacts, World
from vk_provider.pods.writing import write


class State(StrEnum):
    """The name of a record's situation."""

    ORPHANED = "Orphaned"
    """An instance with our stamp whose pod the cache does not have."""
    REAPING = "Reaping"
    """The pod object is gone; what it had must go too."""
    TERMINATING = "Terminating"
    """``deletionTimestamp`` is set."""
    TERMINATED = "Terminated"
    """The phase in the API is terminal."""
    ENDING = "Ending"
    """The end is decided, not yet written: the instance goes first."""
    CREATING = "Creating"
    """A create call is in flight."""
    UNCERTAIN = "Uncertain"
    """A create may have succeeded; lists will tell."""
    LIVE = "Live"
    """The instance is there."""
    LOST = "Lost"
    """The instance was there and is confirmed gone, and nobody ordered it."""
    NEW = "New"
    """No instance, and none was asked for."""


def state(record: Record) -> State:
    """The one name of this combination of slots."""
    if record.gone:
        return State.REAPING
    if record.pod is None:
        return State.ORPHANED
    if desired.is_terminating(record.pod):
        return State.TERMINATING
    if desired.is_terminal(record.pod):
        return State.TERMINATED
    return _unfinished(record)


def _unfinished(record: Record) -> State:
    if record.verdict is not None:
        return State.ENDING
    if isinstance(record.in_flight, CreateInstance) and record.exists is not Existence.PRESENT:
        return State.CREATING
    return _BY_EXISTENCE[record.exists]


_BY_EXISTENCE = {
    Existence.NONE: State.NEW,
    Existence.UNKNOWN: State.UNCERTAIN,
    Existence.PRESENT: State.LIVE,
    Existence.ABSENT: State.LOST,
}


def decide(record: Record, world: World) -> list[Action]:
    """What to do now for this pod; empty when there is nothing to do but wait for news.

    Raises:
        InvalidTransitionError: the record can't have come about by the rules; carries its story.
    """
    if problem := _impossible(record):
        raise InvalidTransitionError(f"pod {record.uid}: {problem}", record.story)
    now = state(record)
    if _may_end_double(record, now, world):
        return [DeleteExtra(*record.extras[0])]
    actions = RULES[now](record, world)
    if now in _ALIVE:
        actions = [*actions, *_deadline(record, world)]
    elif record.extras and record.not_before is not None and now is not State.ORPHANED:
        actions = [*actions, WakeAt(record.not_before)]
    return _one_alarm(actions)


def _impossible(record: Record) -> str | None:
    """What is wrong with this combination of slots, or None."""
    if record.exists is Existence.PRESENT and (record.ref is None or record.backend is None):
        return "an instance is there, but not where"
    if record.exists is Existence.UNKNOWN and record.backend is None:
        return "an instance may be there, but nobody knows which list would show it"
    if (record.verdict is None) != (record.verdict_at is None):
        return "a verdict without its time"
    return None


def _may_end_double(record: Record, now: State, world: World) -> bool:
    """At most one instance per pod: a second one goes, whatever else is going on."""
    if not record.extras or record.in_flight is not None:
        return False
    if record.not_before is not None and world.now < record.not_before:
        return False
    return now is not State.ORPHANED or record.orphan


def _deadline(record: Record, world: World) -> list[Action]:
    """A timer for ``activeDeadlineSeconds``, since no other news may come before it."""
    due = verdicts.deadline(record.pod or {})
    alarms: list[Action] = [WakeAt(due)] if due is not None and due > world.now else []
    if record.extras and record.not_before is not None:
        alarms.append(WakeAt(record.not_before))
    return alarms


def _one_alarm(actions: list[Action]) -> list[Action]:
    """A pod has one timer: of several wishes the earliest counts."""
    alarms = [action.at for action in actions if isinstance(action, WakeAt)]
    if not alarms:
        return actions
    return [*(each for each in actions if not isinstance(each, WakeAt)), WakeAt(min(alarms))]


def _creating(record: Record, world: World) -> list[Action]:
    """Wait for the answer; only an overdue pod gives up on it."""
    assert record.pod is not None
    verdict = verdicts.overdue(record.pod, world.now)
    return conclude(record, verdict) if verdict is not None else []


def _uncertain(record: Record, world: World) -> list[Action]:
    """No second create anywhere until lists show that the first made nothing."""
    verdict = _given_up(record, world)
    if verdict is not None:
        return conclude(record, verdict)
    return _creating(record, world) or [*stranded(record, world), *_giving_up(record, world)]


def _given_up(record: Record, world: World) -> Verdict | None:
    backend = record.backend or ""
    return verdicts.given_up(backend, world.silence(backend), world.limits.backend_lost)


def _giving_up(record: Record, world: World) -> list[Action]:
    """A timer for that, since a silent backend brings no news."""
    limit = world.limits.backend_lost
    if limit is None:
        return []
    return [WakeAt(world.now + timedelta(seconds=limit - world.silence(record.backend or "")))]


def _live(record: Record, world: World) -> list[Action]:
    """Report what is observed; end the pod when the observation, or its deadline, says so."""
    assert record.pod is not None
    verdict = (
        verdicts.overdue(record.pod, world.now)
        or _given_up(record, world)
        or verdicts.dismissed(world.dismissed)
    )
    seen = record.observation
    if verdict is None and seen is not None:
        facts = world.facts.get(record.backend or "", BackendFacts())
        verdict = verdicts.judge(record.pod, seen, restarts_in_place=facts.restarts_in_place)
    starts_by = _starts_by(record, world)
    verdict = (
        verdict
        or verdicts.withdrawn(record.pod, record.leaving_at, world.now)
        or verdicts.unstarted(starts_by, world.now)
    )
    if verdict is not None:
        return conclude(record, verdict)
    timer = _giving_up(record, world)
    if starts_by is not None:
        timer.append(WakeAt(starts_by))
    if record.leaving_at is not None:
        timer.append(WakeAt(verdicts.leaves_by(record.pod, record.leaving_at)))
    if seen is None or seen.phase is InstancePhase.UNKNOWN:
        return timer
    return [*write(record, world), *timer]


def _starts_by(record: Record, world: World) -> datetime | None:
    """When an instance that starts should run; None where it may take its time, or has run.

    Counted by our clock, from when this process made or first saw it: a backend's may differ.
    """
    limit, seen = world.limits.start_deadline, record.observation
    if limit is None or seen is None or seen.phase is not InstancePhase.STARTING:
        return None
    if desired.has_started(record.pod or {}):
        return None
    return (record.baseline or world.now) + timedelta(seconds=limit)


RULES: dict[State, Callable[[Record, World], list[Action]]] = {
    State.ORPHANED: orphaned,
    State.REAPING: reaping,
    State.TERMINATING: terminating,
    State.TERMINATED: terminated,
    State.ENDING: ending,
    State.CREATING: _creating,
    State.UNCERTAIN: _uncertain,
    State.LIVE: _live,
    State.LOST: lost,
    State.NEW: starting,
}

_ALIVE = (State.CREATING, State.UNCERTAIN, State.LIVE, State.NEW)
