"""What lists and answers tell about an instance: absence, doubles, doubt, old news."""

from dataclasses import replace

import pytest

from tests.unit.pods.situations import (
    CHEAP,
    DEAR,
    ELSEWHERE,
    LAG,
    NOW,
    OTHER,
    REF,
    UID,
    at,
    creating,
    instance,
    live,
    make_pod,
    miss,
    new,
    sight,
    told,
)
from vk_provider.faults import (
    DeniedError,
    OutcomeUnknownError,
    OutOfCapacityError,
    ProviderError,
    RejectedError,
    UnavailableError,
)
from vk_provider.pods.actions import DeleteExtra, DeleteInstance
from vk_provider.pods.record import begin
from vk_provider.pods.sightings import MOST_DOUBTS
from vk_provider.pods.slots import Existence, Record
from vk_provider.pods.stimuli import (
    Created,
    CreateFailed,
    Deleted,
    DeleteFailed,
    ExtraDeleted,
    Observed,
)
from vk_provider.pods.types import Candidate, InstancePhase

ORDER = DeleteInstance("a", REF, 30)


def failed(fault: ProviderError, candidate: Candidate = CHEAP) -> CreateFailed:
    """The create's answer, a second after it began."""
    return CreateFailed(candidate, fault, at(1))


def ordered(record: Record, seconds: float = 20, grace: int = 30) -> Record:
    """The record after its instance's end was ordered and acknowledged."""
    return told(begin(record, ORDER), Deleted(at(seconds), grace))


def test_absence_counts_twice_a_lag_apart() -> None:
    """One complete list without the instance may be a slip (C033)."""
    record = told(live(), miss(20), miss(20 + LAG - 1))
    assert record.exists is Existence.PRESENT

    assert told(record, miss(20 + LAG)).exists is Existence.ABSENT


def test_being_seen_between_two_misses_begins_the_count_anew() -> None:
    """Misses must follow each other."""
    record = told(live(), miss(20), sight(22), miss(26), miss(28))

    assert record.exists is Existence.PRESENT


def test_the_same_list_delivered_twice_is_one_miss() -> None:
    """Even where a backend has no lag at all."""
    again = replace(miss(20), list_lag_seconds=0.0)

    assert told(live(), again, again).exists is Existence.PRESENT


def test_a_young_instance_is_never_declared_lost() -> None:
    """Within the lag after its create a list need not show it."""
    record = told(creating(), Created("a", REF, at(10)), miss(11), miss(14))

    assert record.missed_at is None
    assert record.exists is Existence.PRESENT


def test_an_instance_that_no_list_ever_shows_is_gone() -> None:
    """Its create was answered, and nothing came of it: its pod need not wait for ever."""
    record = told(creating(), Created("a", REF, at(10)), miss(20), miss(30))

    assert (record.exists, record.existed) == (Existence.ABSENT, True)


@pytest.mark.parametrize(
    "record", [new(), creating(exists=Existence.UNKNOWN, backend="a"), live(backend="b")]
)
def test_a_list_that_can_not_know_is_ignored(record: Record) -> None:
    """Nothing was made, a create is in flight, or it is another backend's list."""
    assert told(record, miss(50)) == record


def test_an_acknowledged_delete_is_confirmed_by_the_next_list() -> None:
    """A list that began before the acknowledgement says nothing."""
    record = ordered(live())

    assert told(record, miss(19)).exists is Existence.PRESENT
    assert told(record, miss(21)).exists is Existence.ABSENT


def test_what_never_existed_may_be_made_anew() -> None:
    """An unknown outcome is settled by two lists (C024, C034)."""
    record = told(creating(), failed(OutcomeUnknownError("504")))
    assert record.exists is Existence.UNKNOWN

    assert told(record, miss(7), miss(12)).exists is Existence.NONE


def test_an_unknown_outcome_that_shows_up_is_adopted() -> None:
    """The 5xx had made an instance after all (C024)."""
    record = told(creating(), failed(OutcomeUnknownError("500")), sight(10))

    assert (record.exists, record.ref) == (Existence.PRESENT, REF)


def test_a_fault_that_is_not_known_to_have_made_nothing_is_doubt() -> None:
    """A provider's bug raises who knows what."""
    assert told(creating(), failed(ProviderError("bug"))).exists is Existence.UNKNOWN


def test_an_offer_of_unknown_outcomes_is_given_up_in_the_end() -> None:
    """504 for ever must not keep a pod Pending for ever (C035)."""
    record = creating()
    for turn in range(MOST_DOUBTS):
        assert CHEAP not in record.tried
        record = told(record, failed(OutcomeUnknownError("504")))
        record = told(record, miss(100 * turn + 10), miss(100 * turn + 50))
        record = replace(begin(record, creating().in_flight or ORDER), exists=Existence.NONE)

    assert CHEAP in record.tried


@pytest.mark.parametrize(
    ("fault", "ruled_out"),
    [
        (OutOfCapacityError("full"), {CHEAP}),
        (UnavailableError("down"), {CHEAP}),
        (DeniedError("quota"), {CHEAP, DEAR}),
    ],
)
def test_a_fault_rules_out_an_offer_or_its_whole_backend(
    fault: ProviderError, ruled_out: set[Candidate]
) -> None:
    """No capacity is an offer's, a denial is the backend's."""
    record = told(creating(), failed(fault))

    assert record.tried == ruled_out
    assert record.words == f"a: {fault}"
    assert record.in_flight is None


def test_a_refused_request_is_refused_by_every_offer_of_the_backend() -> None:
    """And its words are kept for the verdict; a fault without words has its reason."""
    record = told(creating(), failed(RejectedError()))

    assert record.rejected == {CHEAP, DEAR}
    assert record.refusals == ("a: Rejected",)


def test_a_denial_without_a_preparation_rules_out_what_was_tried() -> None:
    """The catalogue may have changed while the call was under way."""
    record = replace(creating(candidate=ELSEWHERE), prepared=None)
    record = told(record, failed(DeniedError("no"), ELSEWHERE))

    assert ELSEWHERE in record.tried


def test_a_list_may_be_faster_than_the_answer() -> None:
    """What it shows exists, whatever the call says."""
    record = told(creating(), sight(1), failed(OutcomeUnknownError("late")))

    assert (record.exists, record.in_flight) == (Existence.PRESENT, None)
    assert told(creating(), sight(1), Created("a", REF, at(2))).observation == instance()


def test_an_answer_nobody_waits_for_changes_nothing() -> None:
    """It came twice, or after a restart."""
    record = live()
    answers = (
        Created("b", OTHER, at(9)),
        failed(OutOfCapacityError("full")),
        Deleted(at(9), 0),
        DeleteFailed("no", at(9)),
        ExtraDeleted(OTHER),
    )

    assert told(record, *answers) == record


def test_a_second_instance_beside_the_known_one_is_a_double() -> None:
    """Whichever the list names first, ours stays ours (C034)."""
    record = told(live(), miss(15), sight(20, instance(ref=OTHER), REF))

    assert record.ref == REF
    assert record.extras == (("a", OTHER),)
    assert (record.heard_at, record.missed_at) == (at(20), None)


def test_the_other_instances_of_a_list_are_doubles_until_it_shows_them_no_more() -> None:
    """They are replaced by what the next list tells."""
    record = told(live(), sight(20, None, OTHER))
    assert record.extras == (("a", OTHER),)

    assert told(record, sight(21)).extras == ()


def test_an_instance_in_another_backend_is_a_double_too() -> None:
    """Two backends must not take turns in owning the pod."""
    elsewhere = Observed("b", instance(ref=OTHER), at(20), LAG)
    record = told(live(), miss(15), elsewhere)

    assert (record.backend, record.extras) == ("a", (("b", OTHER),))
    assert record.missed_at == at(15)  # its list says nothing of ours
    assert told(record, sight(21)).extras == (("b", OTHER),)


def test_a_double_on_its_way_out_needs_no_order() -> None:
    """It was ordered before."""
    leaving = instance(InstancePhase.DELETING, ref=OTHER)

    assert told(live(), sight(20, leaving, REF)).extras == ()


def test_a_create_that_answers_beside_a_listed_instance_made_a_double() -> None:
    """The one that the lists know stays."""
    record = told(creating(), sight(1), Created("b", OTHER, at(2)))

    assert (record.ref, record.extras) == (REF, (("b", OTHER),))


def test_a_stranger_within_the_lag_is_the_double_and_later_the_heir() -> None:
    """A young instance may not be listed yet; an old one that is not listed is gone."""
    record = told(creating(), Created("a", REF, NOW))

    young = told(record, sight(1, instance(ref=OTHER)))
    assert (young.ref, young.extras) == (REF, (("a", OTHER),))
    assert told(record, sight(60, instance(ref=OTHER))).ref == OTHER
    assert told(live(baseline=None), sight(60, instance(ref=OTHER))).ref == OTHER


def test_a_double_that_was_ordered_to_end_is_forgotten_until_it_is_listed_again() -> None:
    """The order may not have been heard."""
    record = told(live(), sight(20, None, OTHER))
    record = told(begin(record, DeleteExtra("a", OTHER)), ExtraDeleted(OTHER))
    assert (record.extras, record.in_flight) == ((), None)

    assert told(record, sight(30, None, OTHER)).extras == (("a", OTHER),)


def test_old_news_does_not_undo_newer_news() -> None:
    """A list that began before the last one, or before the confirmed absence."""
    ended = told(live(), sight(20, instance(InstancePhase.ENDED)))
    assert told(ended, sight(15)) == ended

    gone = told(live(), miss(20), miss(26))
    assert told(gone, sight(15)) == gone


def test_an_unreadable_state_proves_presence_and_changes_nothing_else() -> None:
    """Garbage from a backend leaves the pod as it is."""
    garbage = instance(InstancePhase.UNKNOWN)

    assert told(live(), sight(20, garbage)).observation == instance()
    assert told(creating(), sight(20, garbage)).observation == garbage
    heir = instance(InstancePhase.UNKNOWN, ref=OTHER)
    assert told(live(), sight(60, heir)).observation == heir


def test_an_instance_that_outlives_its_delete_is_ordered_to_end_again() -> None:
    """Acknowledged, and still running after its grace and the lag (C021)."""
    record = ordered(live())

    assert told(record, sight(20 + 30 + LAG)).deleted_at == at(20)
    late = told(record, sight(20 + 30 + LAG + 1))
    assert (late.deleted_at, late.outlived) == (None, True)


def test_an_instance_on_its_way_out_is_left_alone() -> None:
    """The backend says that it is deleting it."""
    record = told(ordered(live()), sight(500, instance(InstancePhase.DELETING)))

    assert record.deleted_at == at(20)


def test_an_order_holds_for_one_instance_only() -> None:
    """Another one with the same stamp has not been ordered to end."""
    gone = told(ordered(live()), miss(21))

    assert told(gone, sight(30)).deleted_at == at(20)
    assert told(gone, sight(30, instance(ref=OTHER))).deleted_at is None


def test_a_delete_that_was_not_served_waits_for_its_time() -> None:
    """The problem is kept for whoever asks."""
    record = told(begin(live(), ORDER), DeleteFailed("503", at(40)))

    assert (record.not_before, record.delete_problem) == (at(40), "503")
    assert record.in_flight is None


def test_a_sweep_is_counted_once() -> None:
    """The same list twice is one sighting."""
    first = told(Record(UID, NOW), sight(10))

    assert first.sightings == 1
    assert told(first, sight(10)).sightings == 1
    assert told(first, sight(11)).sightings == 2


def test_a_preparation_is_dropped_once_its_instance_is_there() -> None:
    """It holds secrets, and memory for as long as the pod lives (C129)."""
    assert live().prepared is None
    assert told(creating(), Created("a", REF, NOW)).prepared is None
    assert told(creating(make_pod()), sight(1)).prepared is not None
