"""The memory of one pod: one slot per kind of news.

Level-triggered: a slot holds the latest fact, never a history of changes, so a lost or repeated
stimulus is harmless: the next list refills the slot.
Filled by ``pods.record`` and ``pods.sightings``; read by the rules of ``pods.lifecycle``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import Any

from vk_provider.pods.actions import Action
from vk_provider.pods.stimuli import Prepared
from vk_provider.pods.types import Candidate, InstanceRef, Json, Observation, PodUID, Stamp, Verdict


class Existence(StrEnum):
    """What we may believe about the pod's instance."""

    NONE = "None"
    """None was made, as far as anybody knows."""
    UNKNOWN = "Unknown"
    """A create may have succeeded; only complete lists can tell."""
    PRESENT = "Present"
    """A list, a watch or a create's answer shows it."""
    ABSENT = "Absent"
    """It was there and complete lists confirm that it is gone."""


@dataclass(frozen=True, slots=True)
class Record:
    """Everything remembered about one pod UID. Rebuilt from two lists after a restart.

    ``heard_at``: when the latest list (or watch event) that spoke of the instance began.
    ``leaving_at``: since when the instance is shown on its way out. ``extras``: doubles, each with
    its backend. ``doubts``: creates whose outcome was unknown.
    ``stale``: the preparation under way rests on what has changed since. ``short_at``: when the
    candidates were found to be exhausted. ``logs``: the last words of ended containers.
    ``sent``: what stands for the last PATCH; ``answered``: the version that its answer had.
    """

    uid: PodUID
    first_seen: datetime
    pod: Json | None = None
    gone: bool = False

    exists: Existence = Existence.NONE
    existed: bool = False
    backend: str | None = None
    ref: InstanceRef | None = None
    observation: Observation | None = None
    baseline: datetime | None = None
    heard_at: datetime | None = None
    missed_at: datetime | None = None
    leaving_at: datetime | None = None
    extras: tuple[tuple[str, InstanceRef], ...] = ()
    sightings: int = 0
    checks: int = 0
    orphan: bool = False
    checking: bool = False

    preparing: bool = False
    stale: bool = False
    prepared: Prepared | None = None
    tried: frozenset[Candidate] = frozenset()
    doubts: tuple[Candidate, ...] = ()
    rejected: frozenset[Candidate] = frozenset()
    refusals: tuple[str, ...] = ()
    words: str = ""
    short_at: datetime | None = None

    in_flight: Action | None = None
    cancelling: bool = False
    deleted_at: datetime | None = None
    delete_grace: int = 0
    delete_problem: str | None = None
    outlived: bool = False
    not_before: datetime | None = None

    writing: bool = False
    write_not_before: datetime | None = None
    sent: int = 0
    answered: str = ""
    removing: bool = False
    verdict: Verdict | None = None
    verdict_at: datetime | None = None
    logs: Mapping[str, str] = field(default_factory=dict)

    announced: frozenset[str] = frozenset()
    story: tuple[str, ...] = ()

    @property
    def stamp(self) -> Stamp | None:
        """The stamp on the instance, where one was observed."""
        return self.observation.stamp if self.observation else None

    @property
    def may_exist(self) -> bool:
        """Whether an instance is there, or may be."""
        return self.exists in (Existence.PRESENT, Existence.UNKNOWN)


_NAMES = tuple(each.name for each in fields(Record))
_SLOTS = {name: vars(Record)[name].__set__ for name in _NAMES}
_every = attrgetter(*_NAMES)


def changed(record: Record, **changes: Any) -> Record:
    """A copy with these slots filled anew: ``dataclasses.replace``, which for a record of this
    size took a tenth of a node's time, without its generality."""
    made = object.__new__(Record)
    for fill, value in zip(_SLOTS.values(), _every(record), strict=True):
        fill(made, value)
    for name, value in changes.items():
        _SLOTS[name](made, value)
    return made
