"""What can happen to a pod: the news that :func:`vk_provider.pods.record.absorb` puts in its slot.

All are frozen values. Fed by ``loops`` (watch, lists, finished actions); read by ``pods.record``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from vk_provider.faults import FieldProblem, ProviderError
from vk_provider.pods.types import (
    Candidate,
    InstanceRef,
    Json,
    Observation,
    ResolvedPod,
    Verdict,
    Waiting,
)


@dataclass(frozen=True, slots=True)
class Notice:
    """An Event to emit: ``type`` is Normal or Warning."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodSeen:
    """The API server's latest version of the pod."""

    pod: Json


@dataclass(frozen=True, slots=True)
class PodGone:
    """The API server has no such pod any more (or one of another UID under its name)."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A list (begun at ``at``) or a watch of a backend shows the pod's instance. ``extras`` are
    further live instances with the same stamp, in the same backend: doubles, ended at once."""

    backend: str
    observation: Observation
    at: datetime
    list_lag_seconds: float = 0.0
    extras: tuple[InstanceRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Missed:
    """A complete, trusted list of a backend, begun at ``started_at``, does not show the pod."""

    backend: str
    started_at: datetime
    list_lag_seconds: float


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything a create needs, or why it can't be had.

    ``missing``: a reference must appear first. ``refusals``: fields no backend honours; they end
    the pod when there are no ``candidates``. ``shortage``: why the list of candidates is empty
    although the pod could be translated. ``notices``: Events about references.
    """

    resolved: ResolvedPod | None = None
    candidates: tuple[Candidate, ...] = ()
    refusals: tuple[FieldProblem, ...] = ()
    shortage: str = ""
    missing: Waiting | None = None
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class PreparationStale:
    """A ConfigMap or Secret the pod refers to, or the catalogue, has changed."""


@dataclass(frozen=True, slots=True)
class Created:
    """The create call answered with an instance."""

    backend: str
    ref: InstanceRef
    at: datetime


@dataclass(frozen=True, slots=True)
class CreateFailed:
    """The create call ended with a fault, after the core's own retries."""

    candidate: Candidate
    fault: ProviderError
    at: datetime


@dataclass(frozen=True, slots=True)
class Deleted:
    """The backend acknowledged the delete order."""

    at: datetime
    grace_seconds: int


@dataclass(frozen=True, slots=True)
class DeleteFailed:
    """The delete order was not served; it is given again at ``retry_at``."""

    message: str
    retry_at: datetime


@dataclass(frozen=True, slots=True)
class ExtraDeleted:
    """A double was ordered to end."""

    ref: InstanceRef


@dataclass(frozen=True, slots=True)
class StatusWritten:
    """The status PATCH ended. ``pod`` is the answer; None: not written, ``retry_at`` says when
    to try again (the API server refused or is away)."""

    pod: Json | None
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Concluded:
    """The pod's end is decided and its owner was charged for it."""

    verdict: Verdict
    at: datetime


@dataclass(frozen=True, slots=True)
class Retried:
    """A waiting pod may walk its candidates again from the first."""


@dataclass(frozen=True, slots=True)
class OrphanChecked:
    """The API server was asked for the owner of an instance no pod in the cache explains.
    No answer counts as ``exists``: unknown is not absent."""

    exists: bool


@dataclass(frozen=True, slots=True)
class RemovalFailed:
    """The final DELETE of the pod object was not served; again at ``retry_at``."""

    retry_at: datetime


@dataclass(frozen=True, slots=True)
class Announced:
    """Events of these keys were emitted and are not emitted again."""

    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class LogsKept:
    """The last words of ended containers, by name: they become termination messages."""

    messages: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Woken:
    """A timer fired: look again."""


Stimulus = (
    PodSeen
    | PodGone
    | Observed
    | Missed
    | Prepared
    | PreparationStale
    | Created
    | CreateFailed
    | Deleted
    | DeleteFailed
    | ExtraDeleted
    | StatusWritten
    | Concluded
    | Retried
    | OrphanChecked
    | RemovalFailed
    | Announced
    | LogsKept
    | Woken
)
