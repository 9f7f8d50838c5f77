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
from enum import StrEnum

from vk_provider.pods import desired, verdicts
from vk_provider.pods.actions import Action, CreateInstance, DeleteExtra, WakeAt
from vk_provider.pods.ending import (
    conclude,
    ending,
    lost,
    orphaned,
    reaping,
    terminated,
    terminating,
)
from vk_provider.pods.record import Existence, Record
from vk_provider.pods.starting import starting
from vk_provider.pods.types import InstancePhase
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
    """What to do now for this pod; empty when there is nothing to do but wait for news."""
    return RULES[state(record)](record, world)


def _creating(record: Record, world: World) -> list[Action]:
    """Wait for the answer; only an overdue pod gives up on it."""
    assert record.pod is not None
    verdict = verdicts.overdue(record.pod, world.now)
    return conclude(record, verdict) if verdict is not None else []


def _uncertain(record: Record, world: World) -> list[Action]:
    """No second create anywhere until lists show that the first made nothing."""
    return _creating(record, world)


def _live(record: Record, world: World) -> list[Action]:
    """Report what is observed; end the pod when the observation, or its deadline, says so."""
    assert record.pod is not None
    if record.extras and record.in_flight is None and record.backend is not None:
        return [DeleteExtra(record.backend, record.extras[0])]
    verdict = verdicts.overdue(record.pod, world.now)
    seen = record.observation
    if verdict is None and seen is not None:
        facts = world.facts.get(record.backend or "", BackendFacts())
        verdict = verdicts.judge(record.pod, seen, restarts_in_place=facts.restarts_in_place)
    if verdict is not None:
        return conclude(record, verdict)
    actions: list[Action] = []
    if seen is not None and seen.phase is not InstancePhase.UNKNOWN:
        actions += write(record, world)
    deadline = verdicts.deadline(record.pod)
    if deadline is not None:
        actions.append(WakeAt(deadline))
    return actions


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
