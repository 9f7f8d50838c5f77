"""What lists, watches and the answers of creates and deletes tell about a pod's instance.

Each function puts one kind of news in its slots. News that is older than what is known, and
answers that nobody waits for, change nothing. Fed by :func:`vk_provider.pods.record.absorb`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from vk_provider.faults import (
    DeniedError,
    OutOfCapacityError,
    ProviderError,
    RejectedError,
    UnavailableError,
    UnsupportedFieldsError,
)
from vk_provider.pods import stimuli as news
from vk_provider.pods.actions import CreateInstance, DeleteExtra, DeleteInstance
from vk_provider.pods.slots import Existence, Record, changed
from vk_provider.pods.types import Candidate, InstancePhase, InstanceRef, Observation

MOST_DOUBTS = 3
"""So many creates of one offer may end without a known outcome before the next one is tried."""

_CREATED_NOTHING = (
    OutOfCapacityError,
    UnavailableError,
    DeniedError,
    RejectedError,
    UnsupportedFieldsError,
)


def observed(record: Record, seen: news.Observed) -> Record:
    """A list or a watch shows the instance."""
    if _is_old_news(record, seen):
        return record
    if _is_beside_ours(record, seen):
        return _with_doubles(record, seen)
    ref = seen.observation.ref
    is_new_sighting = record.heard_at is None or seen.at > record.heard_at
    outlived = _outlived(record, seen)
    shown = _merge(record.observation, seen.observation)
    is_ordered = ref == _last_ref(record) and not outlived
    return changed(
        record,
        exists=Existence.PRESENT,
        existed=True,
        backend=seen.backend,
        ref=ref,
        observation=shown,
        leaving_at=_leaving_at(record, shown, seen.at),
        extras=_extras(record, seen.backend, seen.extras),
        baseline=record.baseline or seen.at,
        heard_at=seen.at,
        missed_at=None,
        sightings=record.sightings + is_new_sighting,
        deleted_at=record.deleted_at if is_ordered else None,
        outlived=record.outlived or outlived,
        prepared=record.prepared if record.in_flight is not None else None,
    )


def _is_old_news(record: Record, seen: news.Observed) -> bool:
    """A list that began before what we already heard. Where nothing is known to be there, even
    old news is believed: a second instance costs more than a wrong guess."""
    if record.exists not in (Existence.PRESENT, Existence.ABSENT):
        return False
    return record.heard_at is not None and seen.at < record.heard_at


def _is_beside_ours(record: Record, seen: news.Observed) -> bool:
    """The list shows another instance first, and ours is there too (or is too young to show)."""
    if record.exists is not Existence.PRESENT or record.ref is None:
        return False
    if record.backend != seen.backend or record.ref in seen.extras:
        return True
    if record.ref == seen.observation.ref or record.baseline is None:
        return False
    return seen.at < record.baseline + timedelta(seconds=seen.list_lag_seconds)


def _with_doubles(record: Record, seen: news.Observed) -> Record:
    found = [ref for ref in seen.extras if (seen.backend, ref) != (record.backend, record.ref)]
    if seen.observation.phase is not InstancePhase.DELETING:
        found.append(seen.observation.ref)
    record = changed(record, extras=_extras(record, seen.backend, found))
    if record.backend != seen.backend:
        return record
    return changed(record, heard_at=seen.at, missed_at=None)


def _extras(
    record: Record, backend: str, refs: Iterable[InstanceRef]
) -> tuple[tuple[str, InstanceRef], ...]:
    """The doubles, after one backend has told all of its own."""
    elsewhere = [extra for extra in record.extras if extra[0] != backend]
    return (*elsewhere, *((backend, ref) for ref in refs))


def _merge(last: Observation | None, seen: Observation) -> Observation:
    """An unreadable state changes nothing but proves that the instance is still listed."""
    if seen.phase is InstancePhase.UNKNOWN and last is not None and last.ref == seen.ref:
        return last
    return seen


def _leaving_at(record: Record, shown: Observation, at: datetime) -> datetime | None:
    """Since when this instance has been on its way out, whoever ordered that."""
    if shown.phase is not InstancePhase.DELETING:
        return None
    is_known = record.observation is not None and record.observation.ref == shown.ref
    return record.leaving_at or at if is_known else at


def _last_ref(record: Record) -> InstanceRef | None:
    if record.ref is None and record.observation is not None:
        return record.observation.ref
    return record.ref


def _outlived(record: Record, seen: news.Observed) -> bool:
    """An acknowledged delete has had its grace and the list's lag, and the instance lives on."""
    if record.deleted_at is None or seen.observation.ref != record.ref:
        return False
    if seen.observation.phase is InstancePhase.DELETING:
        return False
    patience = timedelta(seconds=seen.list_lag_seconds + record.delete_grace)
    return seen.at > record.deleted_at + patience


def missed(record: Record, miss: news.Missed) -> Record:
    """A complete list does not show the instance: twice, a lag apart, is believed."""
    if not _is_a_miss(record, miss):
        return record
    record = changed(record, heard_at=miss.started_at)
    lag = timedelta(seconds=miss.list_lag_seconds)
    if record.baseline is not None and miss.started_at < record.baseline + lag:
        return record  # a young instance is never declared lost
    if record.deleted_at is not None and miss.started_at > record.deleted_at:
        return _absent(record)  # the order was acknowledged and the list agrees
    if record.missed_at is None:
        return changed(record, missed_at=miss.started_at)
    return _absent(record) if miss.started_at >= record.missed_at + lag else record


def _is_a_miss(record: Record, miss: news.Missed) -> bool:
    """Something may be there, in this backend, and the list is newer than what we know."""
    if not record.may_exist or record.backend != miss.backend:
        return False
    if isinstance(record.in_flight, CreateInstance):
        return False
    return record.heard_at is None or miss.started_at > record.heard_at


def _absent(record: Record) -> Record:
    """Nothing is there. What never existed may be made anew; what existed was lost or ended."""
    return changed(
        record,
        exists=Existence.ABSENT if record.existed else Existence.NONE,
        ref=None,
        missed_at=None,
        extras=_extras(record, record.backend or "", ()),
        not_before=None,
    )


def created(record: Record, answer: news.Created) -> Record:
    """The create call answered with an instance."""
    if not isinstance(record.in_flight, CreateInstance):
        return record
    record = changed(record, in_flight=None, cancelling=False, prepared=None)
    place = (answer.backend, answer.ref)
    is_ours = place == (record.backend, record.ref)
    if record.exists is Existence.PRESENT and not is_ours:
        return changed(record, extras=(*record.extras, place))
    return changed(
        record,
        exists=Existence.PRESENT,
        backend=answer.backend,
        ref=answer.ref,
        observation=record.observation if is_ours else None,
        baseline=answer.at,
        missed_at=None,
        existed=True,
        deleted_at=None,
    )


def create_failed(record: Record, failed: news.CreateFailed) -> Record:
    """The create call ended with a fault: did it make something, and what is ruled out now?"""
    if not isinstance(record.in_flight, CreateInstance):
        return record
    record = _ruled_out(changed(record, in_flight=None, cancelling=False), failed)
    return changed(record, prepared=None, stale=False) if record.stale else record


def _ruled_out(record: Record, failed: news.CreateFailed) -> Record:
    if record.exists is Existence.PRESENT:
        return changed(record, prepared=None)  # a list was faster than the answer
    candidate, words = failed.candidate, f"{failed.candidate.backend}: {_text(failed.fault)}"
    if not isinstance(failed.fault, _CREATED_NOTHING):
        return _in_doubt(changed(record, words=words), failed)
    if isinstance(failed.fault, RejectedError | UnsupportedFieldsError):
        return changed(
            record,
            rejected=record.rejected | _whole_backend(record, candidate),
            refusals=(*record.refusals, words),
        )
    ruled_out = frozenset({candidate})
    if isinstance(failed.fault, DeniedError):
        ruled_out = _whole_backend(record, candidate)
    return changed(record, tried=record.tried | ruled_out, words=words)


def _in_doubt(record: Record, failed: news.CreateFailed) -> Record:
    doubts = (*record.doubts, failed.candidate)
    is_hopeless = doubts.count(failed.candidate) >= MOST_DOUBTS
    return changed(
        record,
        exists=Existence.UNKNOWN,
        backend=failed.candidate.backend,
        baseline=failed.at,
        missed_at=None,
        doubts=doubts,
        tried=record.tried | {failed.candidate} if is_hopeless else record.tried,
    )


def _whole_backend(record: Record, candidate: Candidate) -> frozenset[Candidate]:
    """Every candidate of this one's backend: a denial or a refusal holds for all its offers."""
    known = record.prepared.candidates if record.prepared is not None else ()
    return frozenset({candidate, *(c for c in known if c.backend == candidate.backend)})


def _text(fault: ProviderError) -> str:
    return str(fault) or fault.reason


def deleted(record: Record, order: news.Deleted) -> Record:
    """The backend acknowledged the order; only lists tell that the instance is gone."""
    if not isinstance(record.in_flight, DeleteInstance):
        return record
    return changed(
        record,
        in_flight=None,
        deleted_at=order.at,
        delete_grace=order.grace_seconds,
        delete_problem=None,
        not_before=None,
        missed_at=None,
    )


def delete_failed(record: Record, failed: news.DeleteFailed) -> Record:
    """The order (for the instance or for a double) was not served."""
    if not isinstance(record.in_flight, DeleteInstance | DeleteExtra):
        return record
    return changed(
        record,
        in_flight=None,
        delete_problem=failed.message,
        not_before=failed.retry_at,
    )


def extra_deleted(record: Record, order: news.ExtraDeleted) -> Record:
    """A double was ordered to end; a list that still shows it brings it back."""
    if not isinstance(record.in_flight, DeleteExtra):
        return record
    gone = (record.in_flight.backend, order.ref)
    rest = tuple(extra for extra in record.extras if extra != gone)
    return changed(record, extras=rest, in_flight=None, not_before=None)
