"""The table: one name for each situation, one rule for each name, one alarm for each pod."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.pods.situations import (
    CHEAP,
    NOW,
    OTHER,
    REF,
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
from vk_provider.faults import InvalidTransitionError, OutcomeUnknownError
from vk_provider.pods import actions as todo
from vk_provider.pods import stimuli as news
from vk_provider.pods.lifecycle import RULES, State, decide, state
from vk_provider.pods.record import begin, tell
from vk_provider.pods.slots import Existence, Record
from vk_provider.pods.types import InstancePhase, Running, Terminated, Verdict
from vk_provider.pods.world import LifecycleLimits

DELETING = {"deletionTimestamp": "2024-05-01T10:00:00Z"}
UNCERTAIN = told(creating(), news.CreateFailed(CHEAP, OutcomeUnknownError("504"), at(1)))
LIMITED: dict[str, Any] = {"activeDeadlineSeconds": 60, "status": running_status()}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (told(Record(UID, NOW), sight(1)), State.ORPHANED),
        (told(live(), news.PodGone()), State.REAPING),
        (live(make_pod(metadata=DELETING)), State.TERMINATING),
        (live(make_pod(status={"phase": "Succeeded"})), State.TERMINATED),
        (told(live(), news.Concluded(Verdict("Failed"), NOW)), State.ENDING),
        (creating(), State.CREATING),
        (told(creating(), sight(1)), State.LIVE),
        (UNCERTAIN, State.UNCERTAIN),
        (live(), State.LIVE),
        (told(live(), miss(20), miss(30)), State.LOST),
        (new(), State.NEW),
    ],
)
def test_each_situation_has_one_name(record: Record, expected: State) -> None:
    """And each name has its rule."""
    assert state(record) is expected
    assert set(RULES) == set(State)


@pytest.mark.parametrize(
    "slots",
    [
        {"exists": Existence.PRESENT},
        {"exists": Existence.PRESENT, "ref": REF},
        {"exists": Existence.UNKNOWN},
        {"verdict": Verdict("Failed")},
    ],
)
def test_a_record_that_can_not_be_tells_its_story(slots: dict[str, Any]) -> None:
    """It is our bug, and parks this pod only."""
    record = tell(new(**slots), "New: CreateInstance")

    with pytest.raises(InvalidTransitionError) as raised:
        decide(record, make_world())
    assert raised.value.story == ("New: CreateInstance",)


def test_a_create_in_flight_is_waited_for() -> None:
    """Nothing else is done, whatever lists say."""
    assert decide(told(creating(), miss(50)), make_world(60)) == []


@pytest.mark.parametrize(
    "record", [creating(make_pod(**LIMITED)), replace(UNCERTAIN, pod=make_pod(**LIMITED))]
)
def test_a_pod_past_its_deadline_gives_up_on_its_create(record: Record) -> None:
    """A timer is set, since no other news may come before."""
    assert decide(record, make_world(59)) == [todo.WakeAt(at(60))]
    assert kinds(decide(record, make_world(60))) == ["Announce", "Conclude"]


def test_no_second_create_while_the_first_may_have_made_something() -> None:
    """Not before two lists a lag apart (C024, C034)."""
    assert decide(UNCERTAIN, make_world(2)) == []
    assert decide(told(UNCERTAIN, miss(10)), make_world(11)) == []

    settled = told(UNCERTAIN, miss(10), miss(20))
    assert kinds(decide(settled, make_world(21))) == ["WriteStatus"]


def test_a_restart_adopts_what_is_there() -> None:
    """No create for a pod whose instance is listed (C014)."""
    record = new(make_pod(placed=CHEAP, status=running_status()))
    assert decide(record, make_world(1)) == []

    assert state(told(record, sight(2))) is State.LIVE


def test_a_restart_makes_a_pod_that_was_never_made() -> None:
    """Its create call had not been sent, or had made nothing."""
    record = told(new(make_pod(placed=CHEAP)), miss(10), miss(20))

    assert decide(record, make_world(21)) == [todo.Prepare()]


def test_a_restart_fails_a_pod_that_ended_meanwhile() -> None:
    """It is not started anew in silence (C015)."""
    pod = make_pod(placed=CHEAP, status=running_status(), restartPolicy="Never")
    record = told(new(pod), miss(10), miss(20))

    assert kinds(decide(record, make_world(21))) == ["Announce", "Conclude"]


def test_a_backend_that_is_not_configured_is_told() -> None:
    """The pod stays as it is."""
    record = replace(UNCERTAIN, backend="removed")

    assert kinds(decide(record, make_world(2))) == ["Announce"]


def test_what_is_observed_is_reported() -> None:
    """One PATCH when it runs, none when nothing changed."""
    [write] = decide(live(), make_world(11))
    assert isinstance(write, todo.WriteStatus)
    assert write.patch["status"]["phase"] == "Running"


def test_a_ready_condition_that_somebody_else_changed_is_restored() -> None:
    """Without news from the backend (C047)."""
    unready = running_status(conditions=[{"type": "Ready", "status": "False"}])
    [write] = decide(live(make_pod(status=unready)), make_world(11))

    assert isinstance(write, todo.WriteStatus)
    ready = {one["type"]: one["status"] for one in write.patch["status"]["conditions"]}
    assert ready["Ready"] == "True"


def test_a_pod_whose_instance_is_unreadable_or_unseen_stays_as_it_is() -> None:
    """Garbage from a backend is no news."""
    created = told(creating(), news.Created("a", REF, NOW))

    assert decide(created, make_world(1)) == []
    unreadable = told(created, sight(1, instance(InstancePhase.UNKNOWN)))
    assert decide(unreadable, make_world(2)) == []


def test_an_end_of_the_container_ends_the_pod() -> None:
    """The first observed end that the policy would restart (C108)."""
    over = instance(InstancePhase.ENDED, container(Terminated(1)))

    assert kinds(decide(live(seen=over), make_world(11))) == ["Announce", "Conclude"]


def test_an_instance_that_others_end_and_that_never_goes_is_lost() -> None:
    """Its machine died: when nothing is heard a minute after its grace, it is given up (C012)."""
    leaving = instance(InstancePhase.DELETING, container(Running()))
    record = told(live(), sight(20, leaving), sight(40, leaving))

    assert todo.WakeAt(at(110)) in decide(record, make_world(109))
    [*_, conclude] = decide(record, make_world(110))
    assert isinstance(conclude, todo.Conclude)
    assert conclude.verdict.reason == "ProviderLost"
    assert decide(told(record, sight(45)), make_world(110)) == decide(live(), make_world(110))


def test_a_pod_ends_so_that_a_cap_holds() -> None:
    """As preempted, since its owner should make it anew elsewhere."""
    [event, end] = decide(live(), make_world(11, dismissed="the day's budget is spent"))

    assert isinstance(end, todo.Conclude)
    assert (end.verdict.reason, end.verdict.disruption) == ("Preempted", True)
    assert end.verdict.message == "ended to keep the budget: the day's budget is spent"
    assert isinstance(event, todo.Announce)


def test_a_running_pod_past_its_deadline_ends() -> None:
    """The timer is set while it runs."""
    record = live(make_pod(**LIMITED))

    assert decide(record, make_world(11))[-1] == todo.WakeAt(at(60))
    assert kinds(decide(record, make_world(60))) == ["Announce", "Conclude"]


@pytest.mark.parametrize(
    "record", [UNCERTAIN, live(), told(creating(), news.Created("a", REF, NOW))]
)
def test_pods_of_a_silent_backend_are_given_up_on_request(record: Record) -> None:
    """A timer is set, since a silent backend brings no news."""
    limits = LifecycleLimits(backend_lost=60)
    world = make_world(11, limits=limits, silence=lambda _: 20.0)
    assert decide(record, world)[-1] == todo.WakeAt(at(11 + 40))

    silent = make_world(51, limits=limits, silence=lambda _: 60.0)
    assert kinds(decide(record, silent)) == ["Announce", "Conclude"]


def test_an_instance_that_never_starts_is_lost_on_request() -> None:
    """A pull that hangs is billed; its time begins with the create, by our clock."""
    starts = instance(InstancePhase.STARTING, created_at=at(-1e6))
    limits = LifecycleLimits(start_deadline=60)

    assert decide(live(seen=starts), make_world(11, limits=limits))[-1] == todo.WakeAt(at(60))
    actions = decide(live(seen=starts), make_world(60, limits=limits))
    (verdict,) = [each.verdict for each in actions if isinstance(each, todo.Conclude)]
    assert verdict.reason == "ProviderLost"
    assert "not started within startDeadlineSeconds" in (verdict.message or "")


def test_what_may_take_its_time_or_has_run_is_not_given_up() -> None:
    """Nobody asked for it, it runs, or it ran and its backend moves it."""
    starts = instance(InstancePhase.STARTING)
    limits = LifecycleLimits(start_deadline=60)
    ran = live(make_pod(status=running_status()), starts)

    assert "Conclude" not in kinds(decide(live(seen=starts), make_world(1e6)))
    assert "Conclude" not in kinds(decide(live(), make_world(1e6, limits=limits)))
    assert "Conclude" not in kinds(decide(ran, make_world(1e6, limits=limits)))


def test_of_several_alarms_the_earliest_counts() -> None:
    """A pod has one timer: a failed write is not retried hours later."""
    record = live(make_pod(**LIMITED), write_not_before=at(20))

    assert decide(record, make_world(11)) == [todo.WakeAt(at(20))]


def test_a_double_is_ended_whatever_else_goes_on() -> None:
    """At most one instance per pod (C034)."""
    record = told(live(), sight(20, None, OTHER))
    assert decide(record, make_world(21)) == [todo.DeleteExtra("a", OTHER)]

    order = todo.DeleteExtra("a", OTHER)
    assert kinds(decide(begin(record, order), make_world(21))) == ["WriteStatus"]


@pytest.mark.parametrize("metadata", [{}, DELETING])
def test_a_double_whose_end_was_not_served_waits_for_its_time(metadata: dict[str, Any]) -> None:
    """And not in a hot loop."""
    record = told(live(make_pod(metadata=metadata)), sight(20, None, OTHER))
    record = told(begin(record, todo.DeleteExtra("a", OTHER)), news.DeleteFailed("503", at(30)))

    assert decide(record, make_world(29))[-1] == todo.WakeAt(at(30))
    assert decide(record, make_world(30)) == [todo.DeleteExtra("a", OTHER)]


def test_a_double_of_an_orphan_waits_until_the_owner_was_asked_for() -> None:
    """The pod may only be late; both go when it is gone."""
    orphan = told(Record(UID, NOW), sight(10, None, OTHER))

    assert decide(orphan, make_world(11)) == []
    assert decide(replace(orphan, not_before=at(50)), make_world(11)) == []
    assert kinds(decide(replace(orphan, orphan=True), make_world(11))) == ["DeleteExtra"]


def test_deciding_twice_without_news_adds_nothing() -> None:
    """An action that has begun fills its slot."""
    record = new()
    [action] = decide(record, make_world())

    assert decide(begin(record, action), make_world()) == []
