"""The ways out: the instance goes first, then the verdict; only then the object."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.pods.situations import (
    CHEAP,
    LAG,
    NOW,
    OTHER,
    REF,
    STAMP,
    UID,
    at,
    container,
    creating,
    instance,
    kinds,
    live,
    make_pod,
    make_world,
    miss,
    new,
    running_status,
    sight,
    told,
)
from vk_provider.pods import actions as todo
from vk_provider.pods import stimuli as news
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
from vk_provider.pods.record import begin
from vk_provider.pods.slots import Existence, Record
from vk_provider.pods.types import Candidate, InstancePhase, Terminated, Verdict
from vk_provider.pods.verdicts import failed
from vk_provider.pods.world import BackendFacts

LOST = failed("ProviderLost", "gone")
FULL = failed("OutOfCapacity", "full")
DELETING = {"deletionTimestamp": "2024-05-01T10:00:00Z", "deletionGracePeriodSeconds": 30}


def concluded(record: Record, verdict: Verdict = LOST, seconds: float = 20) -> Record:
    """The record after this verdict."""
    return told(record, news.Concluded(verdict, at(seconds)))


def ordered(record: Record, seconds: float = 20, grace: int = 30) -> Record:
    """The record after its instance's end was ordered and acknowledged."""
    order = todo.DeleteInstance("a", REF, grace)
    return told(begin(record, order), news.Deleted(at(seconds), grace))


def phase_of(action: todo.Action) -> Any:
    """The phase that a PATCH writes."""
    assert isinstance(action, todo.WriteStatus)
    return action.patch["status"].get("phase")


def test_an_end_is_told_once_and_so_is_that_nobody_recreates_the_pod() -> None:
    """A pod of a controller needs no such warning."""
    bare = conclude(new(make_pod(owner=None)), LOST)
    assert kinds(bare) == ["Announce", "Announce", "Conclude"]
    assert [one.notice.reason for one in bare if isinstance(one, todo.Announce)] == [
        "ProviderLost",
        "NotRecreated",
    ]

    assert kinds(conclude(new(), failed("Rejected", ""))) == ["Announce", "Conclude"]
    assert kinds(conclude(new(announced=frozenset({"verdict"})), LOST)) == ["Conclude"]
    assert kinds(conclude(new(), Verdict("Succeeded"))) == ["Conclude"]


def test_the_instance_goes_before_the_verdict_is_written() -> None:
    """A terminal phase while something bills would be a lie (C031)."""
    record = concluded(live())
    assert ending(record, make_world(21)) == [
        todo.DeleteInstance("a", REF, 30, keep_logs=True),
        todo.WakeAt(at(20 + 300 + 30)),
    ]

    [write] = ending(told(ordered(record), miss(30)), make_world(31))
    assert phase_of(write) == "Failed"


def test_while_the_instance_is_cleared_away_the_pod_is_not_ready() -> None:
    """One interim PATCH, if the API still shows Ready or not yet what was seen to end."""
    over = instance(InstancePhase.ENDED, container(Terminated(1)))
    for status in (running_status(), running_status(conditions=[])):
        record = concluded(live(make_pod(status=status), over))

        order, write, _ = ending(record, make_world(21))
        assert order == todo.DeleteInstance("a", REF, 0, keep_logs=True)
        assert phase_of(write) is None
        assert isinstance(write, todo.WriteStatus)
        assert "terminated" in write.patch["status"]["containerStatuses"][0]["state"]

    unseen = concluded(live(make_pod(status=running_status(conditions=[]))))
    assert kinds(ending(unseen, make_world(21))) == ["DeleteInstance", "WakeAt"]


def test_an_ended_instance_that_costs_nothing_does_not_delay_the_verdict() -> None:
    """The provider says which; the rest is cleared away afterwards."""
    facts = {"a": BackendFacts(ended_is_free=True)}
    record = concluded(live(seen=instance(InstancePhase.ENDED)))

    assert kinds(ending(record, make_world(21, facts=facts))) == ["WriteStatus"]
    assert kinds(ending(concluded(live()), make_world(21, facts=facts)))[0] == "DeleteInstance"


def test_after_the_confirm_deadline_the_verdict_is_written_anyway() -> None:
    """The debt is kept and ordered again, with no grace left."""
    record = ordered(concluded(live()))

    assert kinds(ending(record, make_world(349))) == ["WakeAt"]
    write, order = ending(record, make_world(350))
    assert (phase_of(write), order) == ("Failed", todo.DeleteInstance("a", REF, 0))


def test_a_long_grace_is_not_cut_short_by_the_confirm_deadline() -> None:
    """A pod past its deadline may still take its time to stop."""
    pod = make_pod(terminationGracePeriodSeconds=600)
    record = concluded(live(pod))

    assert todo.WakeAt(at(20 + 600 + 300)) in ending(record, make_world(21))
    assert kinds(ending(ordered(record, grace=600), make_world(400))) == ["WakeAt"]


def test_out_of_capacity_is_written_after_the_door_is_shown() -> None:
    """Else the replacement comes straight back; but not for ever."""
    record = concluded(new(), FULL)
    closing = make_world(21, door_published=False)

    assert ending(record, closing) == [todo.WakeAt(at(320))]
    assert kinds(ending(record, make_world(21))) == ["WriteStatus"]
    assert kinds(ending(record, replace(closing, now=at(320)))) == ["WriteStatus"]


def test_a_create_in_flight_is_cancelled_once() -> None:
    """Its outcome is then unknown until lists show it."""
    record = concluded(creating())
    assert kinds(ending(record, make_world(21))) == ["CancelCreate", "WakeAt"]

    record = begin(record, todo.CancelCreate())
    assert kinds(ending(record, make_world(22))) == ["WakeAt"]


def test_grace_is_for_containers_that_run() -> None:
    """A container that ended by itself needs none, its neighbour does."""
    both = instance(InstancePhase.RUNNING, container(Terminated(1)), *instance().containers)
    done = instance(InstancePhase.RUNNING, container(Terminated(1)))

    for seen, grace in ((both, 30), (done, 0), (instance(InstancePhase.STARTING), 0)):
        [order, *_] = ending(concluded(live(seen=seen)), make_world(21))
        assert order == todo.DeleteInstance("a", REF, grace, keep_logs=True)


def test_a_confirmed_absence_that_nobody_ordered_is_a_loss() -> None:
    """Failed, so that Kubernetes recreates it (C033)."""
    gone = told(live(), miss(20), miss(20 + LAG))

    [_, verdict] = lost(gone, make_world(30))
    assert isinstance(verdict, todo.Conclude)
    assert verdict.verdict.reason == "ProviderLost"


def test_a_deleted_pod_leaves_after_its_instance_and_its_last_status() -> None:
    """Order, confirmation, terminal status, object (C002, C003)."""
    record = live(make_pod(metadata=DELETING, status=running_status()))
    assert terminating(record, make_world(11)) == [
        todo.DeleteInstance("a", REF, 30, keep_logs=True)
    ]

    record = told(ordered(record), miss(30))
    [write] = terminating(record, make_world(31))
    assert phase_of(write) == "Failed"
    assert terminating(begin(record, write), make_world(31)) == []

    over = make_pod(metadata={**DELETING, "resourceVersion": "6"}, status={"phase": "Failed"})
    record = told(begin(record, write), news.StatusWritten(over))
    assert terminating(record, make_world(32)) == [todo.RemovePod()]


def test_a_deleted_pod_that_had_succeeded_says_so() -> None:
    """Only observed ends count."""
    over = instance(InstancePhase.ENDED, container(Terminated(0)))
    gone = told(ordered(live(make_pod(metadata=DELETING), over)), miss(30))

    [write] = terminating(gone, make_world(31))
    assert phase_of(write) == "Succeeded"


def test_a_deleted_pod_that_never_ran_just_leaves() -> None:
    """There is nothing to tell (C001)."""
    assert terminating(new(make_pod(metadata=DELETING)), make_world()) == [todo.RemovePod()]


def test_a_deleted_pod_that_is_lost_without_an_observation_failed() -> None:
    """It had started according to the API, and lists do not show it."""
    pod = make_pod(metadata=DELETING, placed=CHEAP, status=running_status())
    assert terminating(new(pod), make_world()) == []

    gone = told(new(pod), miss(10), miss(20))
    [write] = terminating(gone, make_world(21))
    assert phase_of(write) == "Failed"


def test_a_removal_is_asked_for_once_and_again_when_it_failed() -> None:
    """Finalizers may keep the object: no second DELETE."""
    record = begin(new(make_pod(metadata=DELETING)), todo.RemovePod())
    assert terminating(record, make_world()) == []

    record = told(record, news.RemovalFailed(at(10)))
    assert terminating(record, make_world(9)) == [todo.WakeAt(at(10))]
    assert terminating(record, make_world(10)) == [todo.RemovePod()]


def test_a_shortened_grace_is_ordered_again() -> None:
    """A longer one is not (C007)."""
    record = ordered(live(make_pod(metadata=DELETING)))
    assert terminating(record, make_world(21)) == [todo.WakeAt(at(350))]

    shorter = {**DELETING, "deletionGracePeriodSeconds": 5, "resourceVersion": "6"}
    record = told(record, news.PodSeen(make_pod(metadata=shorter)))
    assert terminating(record, make_world(22))[0] == todo.DeleteInstance("a", REF, 5)


def test_an_ignored_delete_is_ordered_again_and_told() -> None:
    """Acknowledged, and still running after grace and lag (C021)."""
    record = ordered(live(make_pod(metadata=DELETING)))
    record = told(record, sight(20 + 30 + LAG + 1))

    warning, order = terminating(record, make_world(60))
    assert isinstance(warning, todo.Announce)
    assert warning.notice.reason == "FailedKillPod"
    assert order == todo.DeleteInstance("a", REF, 30, keep_logs=True)
    orphan = replace(record, pod=None, orphan=True)
    assert kinds(orphaned(orphan, make_world(60))) == ["DeleteInstance"]


def test_an_instance_that_lingers_on_its_way_out_is_told() -> None:
    """A pod that hangs says what it waits for (C012)."""
    record = ordered(live(make_pod(metadata=DELETING)))
    record = told(record, sight(100, instance(InstancePhase.DELETING)))

    assert terminating(record, make_world(349)) == [todo.WakeAt(at(350))]
    [warning] = terminating(record, make_world(350))
    assert isinstance(warning, todo.Announce)
    assert warning.notice.reason == "FailedKillPod"


def test_a_delete_that_was_not_served_is_told_and_tried_again() -> None:
    """At the time the shell chose, not before."""
    order = todo.DeleteInstance("a", REF, 30)
    record = begin(live(make_pod(metadata=DELETING)), order)
    assert terminating(record, make_world(20)) == []

    record = told(record, news.DeleteFailed("503", at(30)))
    assert kinds(terminating(record, make_world(29))) == ["Announce", "WakeAt"]
    assert kinds(terminating(record, make_world(30))) == ["DeleteInstance"]
    silent = replace(record, delete_problem=None)
    assert terminating(silent, make_world(29)) == [todo.WakeAt(at(30))]


def test_logs_are_saved_with_the_first_order_only() -> None:
    """A later one must not be delayed by them."""
    record = live(make_pod(metadata=DELETING), logs={"main": "bye"})

    assert terminating(record, make_world(11)) == [todo.DeleteInstance("a", REF, 30)]


def test_a_finished_pod_pays_its_debt_and_tells_its_last_words() -> None:
    """A terminal phase is never left; the instance still goes."""
    over = instance(InstancePhase.ENDED, container(Terminated(1)))
    record = live(make_pod(status={"phase": "Failed"}), over)
    assert terminated(record, make_world(20)) == [todo.DeleteInstance("a", REF, 0, keep_logs=True)]

    spoken = told(ordered(record, grace=0), news.LogsKept({"main": "bye"}))
    [write] = terminated(spoken, make_world(21))
    assert phase_of(write) is None
    assert terminated(new(make_pod(status={"phase": "Failed"})), make_world()) == []


def test_a_pod_that_vanished_is_forgotten_after_its_instance() -> None:
    """A force-delete does not end the bill by itself (C021)."""
    record = told(live(), news.PodGone())
    assert reaping(record, make_world(11)) == [todo.DeleteInstance("a", REF, 0)]

    assert reaping(told(ordered(record, grace=0), miss(30)), make_world(31)) == [todo.Forget()]


@pytest.mark.parametrize(
    "slots", [{"preparing": True}, {"writing": True}, {"checking": True}, {"extras": (("a", REF),)}]
)
def test_a_pod_with_work_under_way_is_not_forgotten(slots: dict[str, Any]) -> None:
    """Its answer would find nobody."""
    assert reaping(new(gone=True, **slots), make_world()) == []


def test_a_create_in_flight_of_a_vanished_pod_is_cancelled() -> None:
    """And what it may have made is looked for."""
    record = told(creating(), news.PodGone())

    assert reaping(record, make_world()) == [todo.CancelCreate()]


def test_an_orphan_is_believed_on_the_second_sweep_after_asking() -> None:
    """Not before the pod cache is complete (C013, C017)."""
    once = told(Record(UID, NOW), sight(10))
    twice = told(once, sight(20))

    assert orphaned(once, make_world(11)) == []
    assert orphaned(twice, make_world(21, synced=False)) == []
    assert orphaned(twice, make_world(21)) == [todo.CheckOrphan(STAMP)]
    assert orphaned(begin(twice, todo.CheckOrphan(STAMP)), make_world(21)) == []

    asked = told(twice, news.OrphanChecked(exists=False))
    assert orphaned(asked, make_world(22)) == [todo.DeleteInstance("a", REF, 0)]


def test_an_owner_that_exists_is_not_asked_for_at_every_sweep() -> None:
    """The answer does not change that fast."""
    record = told(Record(UID, NOW), sight(1), sight(2), news.OrphanChecked(exists=True))
    record = told(record, sight(3), sight(4))

    assert orphaned(record, make_world(5)) == []
    assert kinds(orphaned(told(record, sight(5), sight(6)), make_world(7))) == ["CheckOrphan"]


def test_an_orphan_that_is_gone_is_forgotten() -> None:
    """Unless something of it is still under way."""
    gone = told(Record(UID, NOW), sight(10), miss(20), miss(30))

    assert orphaned(gone, make_world(31)) == [todo.Forget()]
    assert orphaned(replace(gone, checking=True), make_world(31)) == []
    busy = replace(gone, in_flight=todo.DeleteExtra("a", OTHER))
    assert orphaned(busy, make_world(31)) == []


def test_an_instance_behind_a_backend_that_is_not_configured_is_a_persons_business() -> None:
    """No list will ever confirm anything; the Event says what to do, once."""
    pod = make_pod(metadata=DELETING, placed=Candidate("removed", CHEAP.offer))
    annotations = pod["metadata"].setdefault("annotations", {})
    assert annotations

    [warning] = terminating(new(pod), make_world())
    assert isinstance(warning, todo.Announce)
    assert '"removed"' in warning.notice.message
    assert terminating(new(pod, announced=frozenset({"stranded"})), make_world()) == []
    assert stranded(new(exists=Existence.NONE), make_world()) == []


def test_a_grace_of_any_length_that_the_api_takes_ends() -> None:
    """2**63 - 1 seconds are no moment in time; the instance is ordered to end all the same."""
    pod = make_pod(terminationGracePeriodSeconds=2**63 - 1, status=running_status())
    record = concluded(told(live(), news.PodSeen(pod)))

    actions = ending(record, make_world(20))

    [order] = [one for one in actions if isinstance(one, todo.DeleteInstance)]
    assert order.grace_seconds == 365 * 24 * 3600
