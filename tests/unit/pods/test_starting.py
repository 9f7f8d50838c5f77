"""The gates between a new pod and its create call, in their order."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.pods.situations import (
    CHEAP,
    DEAR,
    ELSEWHERE,
    NOW,
    at,
    kinds,
    make_pod,
    make_world,
    new,
    prepared,
    told,
)
from vk_provider.faults import FieldProblem
from vk_provider.pods import actions as todo
from vk_provider.pods import stimuli as news
from vk_provider.pods.admission import Refusal
from vk_provider.pods.record import begin
from vk_provider.pods.slots import Record
from vk_provider.pods.starting import starting
from vk_provider.pods.types import Verdict, Waiting
from vk_provider.pods.world import BackendFacts, World

JOB = make_pod(owner="Job", restartPolicy="OnFailure")
ALL_COOLED: dict[str, Any] = {"cooled": lambda _: True}


def waiting_reason(actions: list[todo.Action]) -> str:
    """Why the container waits, as the PATCH says it."""
    [write] = [one for one in actions if isinstance(one, todo.WriteStatus)]
    reason: str = write.patch["status"]["containerStatuses"][0]["state"]["waiting"]["reason"]
    return reason


def verdict_of(actions: list[todo.Action]) -> Verdict:
    """The verdict that was taken."""
    [conclusion] = [one for one in actions if isinstance(one, todo.Conclude)]
    return conclusion.verdict


def walk(record: Record, world: World) -> tuple[Record, list[todo.Action]]:
    """The record after the actions of one decision have begun."""
    actions = starting(record, world)
    for action in actions:
        record = begin(record, action)
    return record, actions


def test_a_pod_is_prepared_placed_and_then_made() -> None:
    """The choice is acknowledged before the create call (C026)."""
    record, actions = walk(new(), make_world())
    assert actions == [todo.Prepare()]
    assert starting(record, make_world()) == []

    record, [write] = walk(told(record, prepared(CHEAP, DEAR)), make_world())
    assert waiting_reason([write]) == "ContainerCreating"
    assert starting(record, make_world()) == []

    record = told(record, news.StatusWritten(make_pod(placed=CHEAP)))
    enter, create = starting(record, make_world())
    assert enter == todo.Enter()
    assert isinstance(create, todo.CreateInstance)
    assert create.candidate == CHEAP


def test_the_next_offer_is_tried_and_written_down_first() -> None:
    """What is tried, refused or cooled down is passed over."""
    record = new(
        make_pod(placed=CHEAP),
        prepared=prepared(CHEAP, DEAR, ELSEWHERE),
        tried=frozenset({CHEAP}),
    )
    [write] = starting(record, make_world(cooled=lambda one: one == DEAR))

    assert isinstance(write, todo.WriteStatus)
    assert '"b"' in str(write.patch["metadata"]["annotations"])


def test_pods_of_a_daemon_set_wait_and_never_fail() -> None:
    """Their controller would only loop."""
    actions = starting(new(make_pod(owner="DaemonSet")), make_world())

    assert kinds(actions) == ["Announce", "WriteStatus"]
    assert waiting_reason(actions) == "DaemonSetNotSupported"


def test_a_pod_past_its_deadline_is_not_started() -> None:
    """It waited too long."""
    pod = make_pod(activeDeadlineSeconds=60, status={"startTime": "2024-05-01T10:00:00Z"})

    assert verdict_of(starting(new(pod), make_world(60))).reason == "DeadlineExceeded"


def test_a_held_pod_backs_off_until_its_owners_next_token() -> None:
    """The storm guard stands before every first verdict."""
    world = make_world(held_until=lambda: at(10), refusal=lambda _: Refusal("X", "x"))
    actions = starting(new(), world)

    assert kinds(actions) == ["WriteStatus", "Announce", "WakeAt"]
    assert waiting_reason(actions) == "CreateBackOff"
    assert actions[-1] == todo.WakeAt(at(10))


def test_the_node_admits_again_on_arrival() -> None:
    """``spec.nodeName`` bypasses the scheduler, and so the cost cap."""
    world = make_world(refusal=lambda _: Refusal("OutOfcpu", "too much"), door_closed="capacity")

    assert verdict_of(starting(new(), world)).reason == "OutOfcpu"


def test_the_nodes_labels_may_come_after_the_pod_that_waited_for_them() -> None:
    """Two watches keep no order: a moment is waited before it is refused."""

    def decide_after(seconds: float) -> list[todo.Action]:
        elsewhere = Refusal("NodeAffinity", "no such label")
        return starting(new(), make_world(seconds, refusal=lambda _: elsewhere))

    assert decide_after(1.9) == [todo.WakeAt(at(2))]
    assert verdict_of(decide_after(2)).reason == "NodeAffinity"


def test_behind_a_closed_door_nothing_is_tried() -> None:
    """A pod that came anyway goes home."""
    verdict = verdict_of(starting(new(), make_world(door_closed="capacity")))

    assert (verdict.reason, verdict.disruption) == ("OutOfCapacity", True)


def test_a_missing_reference_is_waited_for_as_a_kubelet_does() -> None:
    """One Event, then the waiting reason; it starts when the reference appears."""
    notice = news.Notice("Warning", "MandatorySecretNotFound", "no Secret x")
    missing = Waiting("CreateContainerConfigError", "no Secret x")
    record = new(prepared=news.Prepared(missing=missing, notices=(notice, notice)))

    [announce] = starting(record, make_world())
    assert isinstance(announce, todo.Announce)
    actions = starting(told(record, news.Announced(frozenset({announce.key}))), make_world())
    assert waiting_reason(actions) == "CreateContainerConfigError"


def test_fields_nobody_honours_end_the_pod_with_all_their_paths() -> None:
    """One verdict names them all."""
    problems = (FieldProblem("spec.hostNetwork", "no"), FieldProblem("spec.hostPID", "no"))
    verdict = verdict_of(starting(new(prepared=news.Prepared(refusals=problems)), make_world()))

    assert verdict.reason == "Unsupported"
    assert verdict.message == "spec.hostNetwork: no; spec.hostPID: no"


def test_an_admitted_pod_is_not_admitted_again() -> None:
    """It holds its share from its preparation on: later pods can't push it out."""
    crowded = make_world(refusal=lambda _: Refusal("OutOfpods", "too many"))

    assert starting(new(preparing=True), crowded) == []
    assert "Conclude" not in kinds(starting(new(prepared=prepared(CHEAP)), crowded))


def test_a_request_that_every_backend_refuses_is_rejected() -> None:
    """While one is left, it is tried."""
    record = new(prepared=prepared(CHEAP, ELSEWHERE), refusals=("a: bad image",))
    refused = replace(record, rejected=frozenset({CHEAP, ELSEWHERE}))
    assert verdict_of(starting(refused, make_world())).reason == "Rejected"

    half = replace(record, rejected=frozenset({CHEAP}))
    assert kinds(starting(half, make_world())) == ["WriteStatus"]
    full = replace(half, tried=frozenset({ELSEWHERE}), words="b: full")
    assert verdict_of(starting(full, make_world())).reason == "OutOfCapacity"


def test_a_pod_that_finds_no_capacity_closes_the_door_and_goes_home() -> None:
    """The shortage is reported before the verdict."""
    record = new(
        prepared=prepared(CHEAP, ELSEWHERE), tried=frozenset({CHEAP, ELSEWHERE}), words="b: full"
    )
    report, *rest = starting(record, make_world())

    assert report == todo.ReportShortage(("a", "b"), "b: full", default_need=True, at=NOW)
    assert verdict_of(rest) == Verdict("Failed", "OutOfCapacity", "b: full", disruption=True)


@pytest.mark.parametrize(
    ("pod", "found"),
    [
        (make_pod(), prepared(CHEAP, gpus=8)),
        (
            make_pod(metadata={"annotations": {"vk-provider.dev/max-price": "0.1"}}),
            prepared(CHEAP),
        ),
    ],
)
def test_a_special_need_does_not_close_the_door(pod: dict[str, Any], found: news.Prepared) -> None:
    """Eight GPUs, or a wish: others may still find what they need."""
    report, *_ = starting(new(pod, prepared=found), make_world(**ALL_COOLED))

    assert isinstance(report, todo.ReportShortage)
    assert not report.default_need


def test_a_pod_without_candidates_tells_why() -> None:
    """The ranking's words, or that all offers cool down."""
    ranked = news.Prepared(shortage="nothing under 0.10 USD/h")
    assert "0.10" in str(verdict_of(starting(new(prepared=ranked), make_world())).message)

    cooling = starting(new(prepared=prepared(CHEAP)), make_world(**ALL_COOLED))
    assert "cooling down" in str(verdict_of(cooling).message)


def test_a_jobs_pod_waits_for_capacity_instead_of_counting_as_a_failure() -> None:
    """It looks again, reports its shortage once, and does not loop."""
    record = new(JOB, prepared=prepared(CHEAP), tried=frozenset({CHEAP}), words="a: full")
    record, actions = walk(record, make_world())
    assert kinds(actions) == ["ReportShortage", "WriteStatus", "WakeAt"]
    assert waiting_reason(actions) == "ProviderUnavailable"
    assert actions[-1] == todo.WakeAt(at(15))

    assert kinds(starting(record, make_world(1))) == ["WakeAt"]


def test_a_waiting_jobs_pod_tries_again_when_its_offers_are_cool() -> None:
    """It is prepared anew, since the catalogue may have changed."""
    slots: dict[str, Any] = {"prepared": prepared(CHEAP), "tried": frozenset({CHEAP})}
    record = new(JOB, short_at=NOW, **slots)

    assert "Retry" not in kinds(starting(record, make_world(15, **ALL_COOLED)))
    assert starting(record, make_world(15)) == [todo.Retry()]
    assert starting(told(record, news.Retried()), make_world(15)) == [todo.Prepare()]


def test_a_waiting_jobs_pod_without_candidates_looks_for_some() -> None:
    """An offer may have come into stock."""
    record = new(JOB, short_at=NOW, prepared=news.Prepared(shortage="none in stock"))

    assert starting(record, make_world(15)) == [todo.Retry()]


def test_a_jobs_pod_waits_only_until_its_pending_deadline() -> None:
    """From its start time, or from when it was first seen."""
    closed = {"door_closed": "capacity"}
    assert starting(new(JOB), make_world(1790, **closed))[-1] == todo.WakeAt(at(1800))
    assert verdict_of(starting(new(JOB), make_world(1800, **closed))).reason == "OutOfCapacity"

    late = {**JOB, "status": {"startTime": "2024-05-01T10:05:00Z"}}
    assert "Conclude" not in kinds(starting(new(late), make_world(1800, **closed)))
    short = new(JOB, short_at=NOW, prepared=prepared(CHEAP), tried=frozenset({CHEAP}))
    assert "Conclude" in kinds(starting(short, make_world(1800)))


def test_a_half_open_door_lets_one_in_and_the_others_look_again() -> None:
    """Even if nobody wakes them."""
    record = new(prepared=prepared(CHEAP))
    actions = starting(record, make_world(headroom=0))
    assert waiting_reason(actions) == "ProviderUnavailable"
    assert actions[-1] == todo.WakeAt(at(15))

    assert kinds(starting(record, make_world(headroom=1))) == ["WriteStatus"]


def test_probes_that_nobody_runs_are_told_once() -> None:
    """Ready then follows the container's running state."""
    probed = [{"name": "main", "livenessProbe": {"httpGet": {"port": 80}}}]
    record = new(make_pod(placed=CHEAP, containers=probed), prepared=prepared(CHEAP))
    assert kinds(starting(record, make_world())) == ["Announce", "Enter", "CreateInstance"]

    told_before = replace(record, announced=frozenset({"probes"}))
    assert kinds(starting(told_before, make_world())) == ["Enter", "CreateInstance"]
    runs_them = make_world(facts={"a": BackendFacts(runs_probes=True)})
    assert kinds(starting(record, runs_them)) == ["Enter", "CreateInstance"]


def test_a_pod_without_room_for_our_note_is_refused() -> None:
    """The API server would refuse the note for ever, and the pod would say nothing."""
    pod = make_pod(metadata={"annotations": {"own": "x" * (256 * 1024 - 10)}})
    verdict = verdict_of(starting(new(pod, prepared=prepared(CHEAP)), make_world()))

    assert verdict.reason == "Unsupported"
    assert str(verdict.message).startswith("metadata.annotations: ")


def test_ten_thousand_problems_fit_into_a_status() -> None:
    """An object has its size; who writes more is refused, and nobody would ever know why."""
    problems = tuple(FieldProblem(f"spec.containers[0].env[{n}]", "no") for n in range(10_000))
    refused = starting(new(prepared=prepared(refusals=problems)), make_world())
    missing = Waiting("CreateContainerConfigError", "no Secret x; " * 10_000)
    [wait] = starting(new(prepared=prepared(missing=missing)), make_world())

    assert len(str(verdict_of(refused).message)) < 33_000
    assert isinstance(wait, todo.WriteStatus)
    assert len(str(wait.patch)) < 34_000
