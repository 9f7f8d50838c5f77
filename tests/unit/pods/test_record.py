"""News goes into its slot; what overtakes, repeats or comes late does no harm."""

import copy
from typing import Any

import pytest

from tests.unit.pods.situations import (
    CHEAP,
    DEAR,
    NOW,
    REF,
    STAMP,
    UID,
    at,
    creating,
    live,
    make_pod,
    new,
    prepared,
    resolved,
    running_status,
    sight,
    told,
)
from vk_provider.faults import DeniedError
from vk_provider.pods import actions as todo
from vk_provider.pods import stimuli as news
from vk_provider.pods.record import STORY_LENGTH, begin, tell
from vk_provider.pods.slots import Existence, Record
from vk_provider.pods.types import Verdict


def versioned(version: str, **more: Any) -> dict[str, Any]:
    """The pod in this version."""
    return make_pod(metadata={"resourceVersion": version, **more})


def test_a_pod_that_was_placed_may_have_an_instance_after_a_restart() -> None:
    """The placement is written before the create call (C014)."""
    record = new(make_pod(placed=CHEAP))

    assert (record.exists, record.backend, record.baseline) == (Existence.UNKNOWN, "a", NOW)
    assert not record.existed


def test_a_pod_that_was_never_placed_has_none() -> None:
    """It is created at once."""
    assert new().exists is Existence.NONE


def test_a_pod_whose_containers_had_started_existed() -> None:
    """If lists do not show its instance it was lost, not never made (C015)."""
    assert new(make_pod(placed=CHEAP, status=running_status())).existed


def test_a_finished_pod_is_not_looked_for() -> None:
    """Its instance was gone, or is a debt that a list will show."""
    record = new(make_pod(placed=CHEAP, status={"phase": "Failed"}))

    assert record.exists is Existence.NONE


def test_an_orphan_whose_pod_appears_is_adopted() -> None:
    """The list was faster than the pod cache."""
    orphan = told(Record(UID, NOW), sight(1), sight(2), news.OrphanChecked(exists=False))
    assert orphan.orphan

    record = told(orphan, news.PodSeen(make_pod(placed=CHEAP)))
    assert (record.orphan, record.exists) == (False, Existence.PRESENT)
    assert not told(record, news.OrphanChecked(exists=False)).orphan


def test_an_owner_that_exists_is_asked_for_ever_more_rarely() -> None:
    """Until the watch shows it nothing is touched."""
    record = told(Record(UID, NOW), sight(1), sight(2), news.OrphanChecked(exists=True))

    assert (record.sightings, record.checks, record.orphan) == (0, 1, False)


def test_the_answer_to_a_patch_does_not_undo_a_newer_version() -> None:
    """A deletion that the watch told first must not be lost (C001)."""
    deleted = versioned("9", deletionTimestamp="2024-05-01T10:00:00Z")
    record = begin(told(new(), news.PodSeen(deleted)), todo.WriteStatus({}))

    written = told(record, news.StatusWritten(versioned("8")))
    assert (written.pod, written.writing, written.answered) == (deleted, False, "8")
    assert told(record, news.StatusWritten(versioned("10"))).pod == versioned("10")


def test_versions_that_are_no_numbers_are_taken_as_they_come() -> None:
    """Only numbers can be compared."""
    record = told(new(versioned("x")), news.PodSeen(versioned("a")))

    assert record.pod == versioned("a")


def test_a_pod_seen_again_after_it_was_gone_is_there() -> None:
    """A watch that began anew had lost it."""
    record = told(new(removing=True), news.PodGone())
    assert (record.gone, record.removing) == (True, False)

    assert not told(record, news.PodSeen(versioned("9"))).gone


def test_a_preparation_that_became_stale_under_way_is_not_used() -> None:
    """The Secret changed while it was read."""
    record = begin(new(), todo.Prepare())
    record = told(record, news.PreparationStale(), prepared(CHEAP))
    assert (record.prepared, record.preparing) == (None, False)

    record = told(begin(record, todo.Prepare()), prepared(CHEAP))
    assert record.prepared == prepared(CHEAP)


def test_a_stale_preparation_is_dropped_once_its_create_has_ended() -> None:
    """What was sent can't be called back, but the next offer must not get the old image."""
    assert told(new(prepared=prepared(CHEAP)), news.PreparationStale()).prepared is None

    record = told(creating(), news.PreparationStale())
    assert record.prepared is not None
    record = told(record, news.CreateFailed(CHEAP, DeniedError("no"), at(1)))
    assert (record.prepared, record.stale) == (None, False)
    assert record.tried == {CHEAP, DEAR}


def test_a_preparation_nobody_asked_for_is_ignored() -> None:
    """It is the answer to an older question."""
    assert told(new(), prepared(CHEAP)).prepared is None


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"restartPolicy": "Never"}},
        {"metadata": {"annotations": {"vk-provider.dev/max-price": "1"}}},
        {"metadata": {"labels": {"app": "web"}}},
    ],
)
def test_a_pod_that_wants_something_else_is_prepared_anew(change: dict[str, Any]) -> None:
    """Its image, wishes and labels are part of what was resolved."""
    pod: dict[str, Any] = copy.deepcopy(make_pod())
    for part, fields in change.items():
        pod[part] |= fields
    record = new(prepared=prepared(CHEAP))

    assert told(record, news.PodSeen(pod)).prepared is None


def test_our_own_annotation_is_no_reason_to_prepare_anew() -> None:
    """It is written between the preparation and the create."""
    record = new(prepared=prepared(CHEAP), writing=True)
    placed = make_pod(placed=CHEAP)

    assert told(record, news.StatusWritten(placed)).prepared is not None


def test_a_status_that_was_not_written_waits_for_its_time() -> None:
    """And an answer nobody waits for sets no timer."""
    failed = news.StatusWritten(None, at(10))

    assert told(new(writing=True), failed).write_not_before == at(10)
    assert told(new(), failed).write_not_before is None


def test_the_first_verdict_stands() -> None:
    """Its owner was charged for it."""
    first, second = Verdict("Failed", "ProviderLost"), Verdict("Succeeded")
    record = told(new(), news.Concluded(first, NOW), news.Concluded(second, at(1)))

    assert (record.verdict, record.verdict_at) == (first, NOW)


def test_a_retry_forgets_what_was_tried() -> None:
    """And prepares anew, since the catalogue has changed."""
    record = told(
        new(prepared=prepared(CHEAP), tried={CHEAP}, words="full", short_at=NOW, doubts=(CHEAP,)),
        news.Retried(),
    )

    assert record == new()


def test_a_removal_that_failed_waits_for_its_time() -> None:
    """Only while it is under way."""
    failed = news.RemovalFailed(at(10))

    assert told(new(removing=True), failed).not_before == at(10)
    assert told(new(), failed) == new()


def test_last_words_are_collected_by_container() -> None:
    """Logs may be saved one after another."""
    record = told(live(), news.LogsKept({"main": "bye"}), news.LogsKept({"side": "ciao"}))

    assert record.logs == {"main": "bye", "side": "ciao"}


def test_announcements_are_remembered_and_waking_changes_nothing() -> None:
    """A timer says only: look again."""
    record = told(new(), news.Announced(frozenset({"a"})), news.Announced(frozenset({"b"})))

    assert record.announced == {"a", "b"}
    assert told(record, news.Woken()) == record


def test_the_story_keeps_the_last_steps() -> None:
    """It is what an invalid transition tells."""
    record = new()
    for number in range(STORY_LENGTH + 5):
        record = tell(record, str(number))

    assert len(record.story) == STORY_LENGTH
    assert record.story[-1] == str(STORY_LENGTH + 4)


@pytest.mark.parametrize(
    ("action", "slot", "value"),
    [
        (todo.Prepare(), "preparing", True),
        (todo.WriteStatus({}), "writing", True),
        (todo.CancelCreate(), "cancelling", True),
        (todo.CheckOrphan(STAMP), "checking", True),
        (todo.RemovePod(), "removing", True),
        (todo.ReportShortage((), "", default_need=True, at=NOW), "short_at", NOW),
        (todo.DeleteInstance("a", REF, 0), "in_flight", todo.DeleteInstance("a", REF, 0)),
        (todo.DeleteExtra("a", REF), "in_flight", todo.DeleteExtra("a", REF)),
    ],
)
def test_an_action_under_way_fills_its_slot(action: todo.Action, slot: str, value: object) -> None:
    """So that deciding again adds nothing."""
    assert getattr(begin(new(), action), slot) == value


def test_a_create_under_way_begins_a_new_walk() -> None:
    """What was short before is told again if this fails too."""
    create = todo.CreateInstance(resolved(make_pod()), CHEAP)
    record = begin(new(short_at=NOW, missed_at=NOW), create)

    assert (record.in_flight, record.short_at, record.missed_at) == (create, None, None)
    assert begin(record, todo.Retry()) == record
