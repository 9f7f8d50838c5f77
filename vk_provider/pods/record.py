"""The memory of one pod: one slot per kind of news, and ``absorb``, which fills the slots.

Level-triggered: a slot holds the latest fact, never a history of changes, so a lost or repeated
stimulus is harmless: the next list refills the slot. Nothing is decided here.
Fed by ``loops.pod_workers`` with stimuli; read by ``pods.lifecycle``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from vk_provider.faults import (
    DeniedError,
    OutcomeUnknownError,
    ProviderError,
    RejectedError,
    UnsupportedFieldsError,
)
from vk_provider.pods import desired
from vk_provider.pods import stimuli as news
from vk_provider.pods.actions import (
    Action,
    CancelCreate,
    CheckOrphan,
    CreateInstance,
    DeleteExtra,
    DeleteInstance,
    Prepare,
    RemovePod,
    WriteStatus,
)
from vk_provider.pods.types import (
    InstancePhase,
    InstanceRef,
    Json,
    Observation,
    PodUID,
    Stamp,
    Verdict,
)

STORY_LENGTH = 20


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
    """Everything remembered about one pod UID. Rebuilt from two lists after a restart."""

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
    missed_at: datetime | None = None
    extras: tuple[InstanceRef, ...] = ()
    sightings: int = 0
    orphan: bool = False
    checking: bool = False

    preparing: bool = False
    prepared: news.Prepared | None = None
    tried: frozenset[news.Candidate] = frozenset()
    rejected: frozenset[news.Candidate] = frozenset()
    refusals: tuple[str, ...] = ()
    words: str = ""

    in_flight: Action | None = None
    cancelling: bool = False
    deleted_at: datetime | None = None
    delete_grace: int = 0
    delete_problem: str | None = None
    not_before: datetime | None = None

    writing: bool = False
    write_not_before: datetime | None = None
    removing: bool = False
    verdict: Verdict | None = None
    verdict_at: datetime | None = None

    announced: frozenset[str] = frozenset()
    story: tuple[str, ...] = ()

    @property
    def stamp(self) -> Stamp | None:
        """The stamp on the instance, where one was observed."""
        return self.observation.stamp if self.observation else None


def absorb(record: Record, stimulus: news.Stimulus) -> Record:
    """The record with this news in its slot. Pure; unknown stimuli are a programming error."""
    return _SLOTS[type(stimulus)](record, stimulus)


def tell(record: Record, sentence: str) -> Record:
    """The record with one more line of its story (the last ``STORY_LENGTH`` are kept)."""
    return replace(record, story=(*record.story, sentence)[-STORY_LENGTH:])


def _pod_seen(record: Record, seen: news.PodSeen) -> Record:
    if record.pod is not None:
        return replace(record, pod=seen.pod, gone=False)
    record = replace(record, pod=seen.pod, gone=False, orphan=False)
    placement = desired.placement(seen.pod)
    if record.exists is not Existence.NONE or placement is None or desired.is_terminal(seen.pod):
        return record
    # The annotation is written before the create call: without it nothing was ever made; with it
    # a create may have been sent by our predecessor up to this very moment.
    return replace(
        record,
        exists=Existence.UNKNOWN,
        existed=desired.has_started(seen.pod),
        backend=placement.backend,
        baseline=record.first_seen,
    )


def _pod_gone(record: Record, _: news.PodGone) -> Record:
    return replace(record, gone=True, removing=False)


def _observed(record: Record, seen: news.Observed) -> Record:
    again = record.ref == seen.observation.ref and record.deleted_at is not None
    return replace(
        record,
        exists=Existence.PRESENT,
        existed=True,
        backend=seen.backend,
        ref=seen.observation.ref,
        observation=_merge(record.observation, seen.observation),
        extras=seen.extras,
        baseline=record.baseline or seen.at,
        missed_at=None,
        sightings=record.sightings + 1,
        deleted_at=None if again and _outlived(record, seen) else record.deleted_at,
    )


def _merge(last: Observation | None, seen: Observation) -> Observation:
    """An unreadable state changes nothing but proves that the instance is still listed."""
    if seen.phase is InstancePhase.UNKNOWN and last is not None and last.ref == seen.ref:
        return last
    return seen


def _outlived(record: Record, seen: news.Observed) -> bool:
    """An acknowledged delete has had its grace and the list's lag, and the instance lives on."""
    if record.deleted_at is None or seen.observation.phase is InstancePhase.DELETING:
        return False
    patience = timedelta(seconds=seen.list_lag_seconds + record.delete_grace)
    return seen.at > record.deleted_at + patience


def _missed(record: Record, missed: news.Missed) -> Record:
    if record.exists not in (Existence.PRESENT, Existence.UNKNOWN):
        return record
    if record.backend != missed.backend or isinstance(record.in_flight, CreateInstance):
        return record
    lag = timedelta(seconds=missed.list_lag_seconds)
    if record.baseline is not None and missed.started_at < record.baseline + lag:
        return record  # a young instance is never declared lost
    if record.deleted_at is not None and missed.started_at > record.deleted_at:
        return _absent(record)  # the order was acknowledged and the list agrees
    if record.missed_at is None:
        return replace(record, missed_at=missed.started_at)
    if missed.started_at < record.missed_at + lag:
        return record
    return _absent(record)


def _absent(record: Record) -> Record:
    """Nothing is there. What never existed may be made anew; what existed was lost or ended."""
    exists = Existence.ABSENT if record.existed else Existence.NONE
    return replace(record, exists=exists, ref=None, missed_at=None, extras=(), not_before=None)


def _prepared(record: Record, prepared: news.Prepared) -> Record:
    return replace(record, preparing=False, prepared=prepared)


def _stale(record: Record, _: news.PreparationStale) -> Record:
    return replace(record, prepared=None)


def _created(record: Record, created: news.Created) -> Record:
    return replace(
        record,
        in_flight=None,
        cancelling=False,
        exists=Existence.PRESENT,
        backend=created.backend,
        ref=created.ref,
        baseline=created.at,
        missed_at=None,
        existed=True,
        deleted_at=None,
    )


def _create_failed(record: Record, failed: news.CreateFailed) -> Record:
    record = replace(record, in_flight=None, cancelling=False)
    if record.exists is Existence.PRESENT:
        return record  # a list was faster than the answer
    if isinstance(failed.fault, OutcomeUnknownError):
        return replace(
            record,
            exists=Existence.UNKNOWN,
            backend=failed.candidate.backend,
            baseline=failed.at,
            missed_at=None,
        )
    words = f"{failed.candidate.backend}: {_text(failed.fault)}"
    if isinstance(failed.fault, RejectedError | UnsupportedFieldsError):
        return replace(
            record,
            rejected=record.rejected | _whole_backend(record, failed.candidate),
            refusals=(*record.refusals, words),
        )
    ruled_out = frozenset({failed.candidate})
    if isinstance(failed.fault, DeniedError):
        ruled_out = _whole_backend(record, failed.candidate)
    return replace(record, tried=record.tried | ruled_out, words=words)


def _whole_backend(record: Record, candidate: news.Candidate) -> frozenset[news.Candidate]:
    """Every candidate of this one's backend: a denial or a refusal holds for all its offers."""
    known = record.prepared.candidates if record.prepared is not None else ()
    return frozenset({candidate, *(c for c in known if c.backend == candidate.backend)})


def _text(fault: ProviderError) -> str:
    return str(fault) or fault.reason


def _deleted(record: Record, deleted: news.Deleted) -> Record:
    return replace(
        record,
        in_flight=None,
        deleted_at=deleted.at,
        delete_grace=deleted.grace_seconds,
        delete_problem=None,
        not_before=None,
        missed_at=None,
    )


def _delete_failed(record: Record, failed: news.DeleteFailed) -> Record:
    return replace(
        record,
        in_flight=None,
        delete_problem=failed.message,
        not_before=failed.retry_at,
    )


def _extra_deleted(record: Record, deleted: news.ExtraDeleted) -> Record:
    rest = tuple(ref for ref in record.extras if ref != deleted.ref)
    return replace(record, extras=rest, in_flight=None)


def _status_written(record: Record, written: news.StatusWritten) -> Record:
    pod = written.pod if written.pod is not None else record.pod
    return replace(record, pod=pod, writing=False, write_not_before=written.retry_at)


def _concluded(record: Record, concluded: news.Concluded) -> Record:
    return replace(record, verdict=concluded.verdict, verdict_at=concluded.at)


def _retried(record: Record, _: news.Retried) -> Record:
    return replace(
        record, tried=frozenset(), rejected=frozenset(), refusals=(), words="", prepared=None
    )


def _orphan_checked(record: Record, checked: news.OrphanChecked) -> Record:
    # An owner that exists will reach us through the watch; until then nothing is touched.
    sightings = 0 if checked.exists else record.sightings
    return replace(record, checking=False, orphan=not checked.exists, sightings=sightings)


def _removal_failed(record: Record, failed: news.RemovalFailed) -> Record:
    return replace(record, removing=False, not_before=failed.retry_at)


def _announced(record: Record, announced: news.Announced) -> Record:
    return replace(record, announced=record.announced | announced.keys)


def _woken(record: Record, _: news.Woken) -> Record:
    return record


_SLOTS: dict[type, Callable[[Record, Any], Record]] = {
    news.PodSeen: _pod_seen,
    news.PodGone: _pod_gone,
    news.Observed: _observed,
    news.Missed: _missed,
    news.Prepared: _prepared,
    news.PreparationStale: _stale,
    news.Created: _created,
    news.CreateFailed: _create_failed,
    news.Deleted: _deleted,
    news.DeleteFailed: _delete_failed,
    news.ExtraDeleted: _extra_deleted,
    news.StatusWritten: _status_written,
    news.Concluded: _concluded,
    news.Retried: _retried,
    news.OrphanChecked: _orphan_checked,
    news.RemovalFailed: _removal_failed,
    news.Announced: _announced,
    news.Woken: _woken,
}


def begin(record: Record, action: Action) -> Record:
    """The record while ``action`` is carried out; the shell calls it before it acts."""
    match action:
        case CreateInstance():
            return replace(record, in_flight=action, missed_at=None)
        case DeleteInstance() | DeleteExtra():
            return replace(record, in_flight=action)
        case CancelCreate():
            return replace(record, cancelling=True)
        case Prepare():
            return replace(record, preparing=True)
        case WriteStatus():
            return replace(record, writing=True, write_not_before=None)
        case CheckOrphan():
            return replace(record, checking=True)
        case RemovePod():
            return replace(record, removing=True, not_before=None)
    return record
