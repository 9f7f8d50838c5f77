"""``absorb`` puts news of one pod in its slot, ``begin`` notes what is under way. Neither decides.

Fed by ``loops.pod_workers`` with stimuli; the record is read by ``pods.lifecycle``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vk_provider.pods import desired, names, sightings, writing
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
    ReportShortage,
    WriteStatus,
)
from vk_provider.pods.reading import mapping
from vk_provider.pods.slots import Existence, Record, changed
from vk_provider.pods.types import Json

STORY_LENGTH = 20


def absorb(record: Record, stimulus: news.Stimulus) -> Record:
    """The record with this news in its slot. Pure; unknown stimuli are a programming error."""
    return _SLOTS[type(stimulus)](record, stimulus)


def tell(record: Record, sentence: str) -> Record:
    """The record with one more line of its story (the last ``STORY_LENGTH`` are kept)."""
    return changed(record, story=(*record.story, sentence)[-STORY_LENGTH:])


def _pod_seen(record: Record, seen: news.PodSeen) -> Record:
    if record.pod is not None:
        return changed(_with_pod(record, seen.pod), gone=False)
    record = changed(record, pod=seen.pod, gone=False, orphan=False)
    placement = desired.placement(seen.pod)
    if record.exists is not Existence.NONE or placement is None or desired.is_terminal(seen.pod):
        return record
    # The annotation is written before the create call: without it nothing was ever made; with it
    # a create may have been sent by our predecessor up to this very moment.
    return changed(
        record,
        exists=Existence.UNKNOWN,
        existed=desired.has_started(seen.pod),
        backend=placement.backend,
        baseline=record.first_seen,
    )


def _with_pod(record: Record, pod: Json) -> Record:
    """The newer version wins: the answer to a PATCH and the watch overtake each other."""
    known = record.pod or {}
    if _is_older(pod, known):
        return record
    if (record.preparing or record.prepared is not None) and _wishes(pod) != _wishes(known):
        record = _made_stale(record)
    return changed(record, pod=pod)


def _is_older(pod: Json, known: Json) -> bool:
    versions = [desired.version(each) for each in (pod, known)]
    return all(version.isdecimal() for version in versions) and int(versions[0]) < int(versions[1])


def _wishes(pod: Json) -> tuple[Json, Json, dict[str, str]]:
    """What a preparation rests on; our own annotation is no news."""
    annotations = desired.annotations_of(pod)
    annotations.pop(names.PLACEMENT, None)
    return mapping(pod, "spec"), mapping(mapping(pod, "metadata"), "labels"), annotations


def _pod_gone(record: Record, _: news.PodGone) -> Record:
    return changed(record, gone=True, removing=False)


def _prepared(record: Record, prepared: news.Prepared) -> Record:
    if not record.preparing:
        return record
    return changed(
        record, preparing=False, stale=False, prepared=None if record.stale else prepared
    )


def _stale(record: Record, _: news.PreparationStale) -> Record:
    return _made_stale(record)


def _made_stale(record: Record) -> Record:
    """What was prepared no longer holds, nor will what is being prepared at this moment."""
    if isinstance(record.in_flight, CreateInstance):
        return changed(record, stale=True)  # the call has what it was given; the next has not
    return changed(record, prepared=None, stale=record.preparing)


def _status_written(record: Record, written: news.StatusWritten) -> Record:
    if written.pod is not None:
        record = _with_pod(record, written.pod)
    if not record.writing:
        return record
    answered = desired.version(written.pod) if written.pod is not None else ""
    return changed(record, writing=False, write_not_before=written.retry_at, answered=answered)


def _concluded(record: Record, concluded: news.Concluded) -> Record:
    if record.verdict is not None:
        return record
    return changed(record, verdict=concluded.verdict, verdict_at=concluded.at)


def _retried(record: Record, _: news.Retried) -> Record:
    return changed(
        record,
        tried=frozenset(),
        doubts=(),
        rejected=frozenset(),
        refusals=(),
        words="",
        short_at=None,
        prepared=None,
    )


def _orphan_checked(record: Record, checked: news.OrphanChecked) -> Record:
    # An owner that exists will reach us through the watch; until then nothing is touched, and
    # the question is asked ever more rarely.
    if not checked.exists:
        return changed(record, checking=False, orphan=record.pod is None)
    return changed(record, checking=False, sightings=0, checks=record.checks + 1)


def _removal_failed(record: Record, failed: news.RemovalFailed) -> Record:
    if not record.removing:
        return record
    return changed(record, removing=False, not_before=failed.retry_at)


def _announced(record: Record, announced: news.Announced) -> Record:
    return changed(record, announced=record.announced | announced.keys)


def _logs_kept(record: Record, kept: news.LogsKept) -> Record:
    return changed(record, logs={**record.logs, **kept.messages})


def _woken(record: Record, _: news.Woken) -> Record:
    return record


_SLOTS: dict[type, Callable[[Record, Any], Record]] = {
    news.PodSeen: _pod_seen,
    news.PodGone: _pod_gone,
    news.Observed: sightings.observed,
    news.Missed: sightings.missed,
    news.Prepared: _prepared,
    news.PreparationStale: _stale,
    news.Created: sightings.created,
    news.CreateFailed: sightings.create_failed,
    news.Deleted: sightings.deleted,
    news.DeleteFailed: sightings.delete_failed,
    news.ExtraDeleted: sightings.extra_deleted,
    news.StatusWritten: _status_written,
    news.Concluded: _concluded,
    news.Retried: _retried,
    news.OrphanChecked: _orphan_checked,
    news.RemovalFailed: _removal_failed,
    news.Announced: _announced,
    news.LogsKept: _logs_kept,
    news.Woken: _woken,
}


def begin(record: Record, action: Action) -> Record:
    """The record while ``action`` is carried out; the shell calls it before it acts."""
    if isinstance(action, CreateInstance):
        return changed(record, in_flight=action, missed_at=None, short_at=None)
    if isinstance(action, DeleteInstance | DeleteExtra):
        return changed(record, in_flight=action)
    if isinstance(action, ReportShortage):
        return changed(record, short_at=action.at)
    if isinstance(action, WriteStatus):
        sent = writing.print_of(action.patch)
        return changed(record, writing=True, write_not_before=None, sent=sent, answered="")
    return changed(record, **_BEGUN.get(type(action), {}))


_BEGUN: dict[type, dict[str, Any]] = {
    CancelCreate: {"cancelling": True},
    Prepare: {"preparing": True, "stale": False},
    CheckOrphan: {"checking": True},
    RemovePod: {"removing": True, "not_before": None},
}
