"""Training is let in after inference has found another place, or at the deadline."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bursting.tiny_cluster import CHECK, HOME, OUTSIDE, START, TinyCluster, job
from vk_provider.bursting.evacuation import EvacuationLimits, Look, Plan, plan, waiting
from vk_provider.bursting.moves import Scaler
from vk_provider.bursting.picture import PodView, Selection

LIMITS = EvacuationLimits(frozenset({CHECK}), deadline=100, topology=True)
SELECTION = Selection()


def planned(cluster: TinyCluster, begun: Mapping[str, datetime] | None = None) -> Plan:
    """What is to be written now."""
    look = Look(cluster.picture(), [cluster.deployment], cluster.now, begun or {})
    return plan(look, SELECTION, LIMITS)


def play(cluster: TinyCluster, steps: int) -> list[str]:
    """Let the controller turn for so long; what the check said, each thing once."""
    said: dict[str, None] = {}
    for _ in range(steps):
        found = planned(cluster)
        cluster.write(found.moves)
        cluster.answer(found.answers)
        said.update((answer.message, None) for answer in found.answers)
        cluster.step()
    return list(said)


def test_no_replica_is_missed_while_training_takes_all_of_home() -> None:
    """Sixteen go outside and are Ready before the first of them leaves."""
    cluster = TinyCluster(workloads=[job()])

    said = play(cluster, 20)

    assert not cluster.workloads
    assert cluster.least_ready == 16
    assert [cluster.on(name) for name in (*HOME, OUTSIDE)] == [0, 0, 16]
    assert cluster.deployment.replicas == 16
    assert not cluster.deployment.has_annotation
    assert said[0] == "waiting for 16 inference pods to find another place"
    assert said[-1] == "nobody is in the way"


def test_only_those_in_the_way_move() -> None:
    """A job of one node leaves the other alone."""
    cluster = TinyCluster(workloads=[job(count=1)])

    play(cluster, 20)

    assert cluster.least_ready == 16
    assert sorted(cluster.on(name) for name in HOME) == [0, 8]


def test_at_the_deadline_training_wins() -> None:
    """Half of them found a place; the rest is preempted, and the surge is taken back."""
    cluster = TinyCluster(outside_slots=8, workloads=[job()])

    said = play(cluster, 130)

    assert not cluster.workloads
    assert said[-1].startswith("the deadline of 100 s has passed with 16 inference pods in the way")
    assert cluster.deployment.replicas == 16
    assert cluster.on(OUTSIDE) == 8


def test_a_job_that_goes_away_takes_its_surge_along() -> None:
    """What was asked for stands again, and nothing of ours is left on anything."""
    cluster = TinyCluster(outside_slots=4, workloads=[job()])
    play(cluster, 10)
    assert cluster.deployment.replicas == 32

    cluster.workloads.clear()
    play(cluster, 10)

    assert cluster.deployment.replicas == 16
    assert not cluster.deployment.has_annotation
    assert all(pod.deletion_cost is None for pod in cluster.pods.values())
    assert cluster.least_ready == 16


@given(st.integers(0, 12), st.integers(0, 12))
def test_a_new_leader_goes_on_wherever_the_old_one_stopped(stop: int, pause: int) -> None:
    """All that is remembered stands on the Deployment and its pods."""
    cluster = TinyCluster(workloads=[job()])
    play(cluster, stop)
    for _ in range(pause):
        cluster.step()

    play(cluster, 25)

    assert cluster.least_ready == 16
    assert cluster.on(OUTSIDE) == 16
    assert not cluster.deployment.has_annotation


def test_an_autoscaler_is_held_and_restored() -> None:
    """Its bounds are widened for the surge alone."""
    scaler = Scaler("hpa", 2, 16)
    cluster = TinyCluster(scaler=scaler, workloads=[job()])

    play(cluster, 25)

    assert cluster.least_ready == 16
    assert cluster.on(OUTSIDE) == 16
    assert cluster.deployment.scaler == scaler


def test_nobody_in_the_way_is_ready_at_once() -> None:
    """Also for a job that could never run: it is not ours to hold."""
    free = TinyCluster(replicas=2, workloads=[job(count=1)])
    huge = TinyCluster(workloads=[job(gpus=64)])

    [first], [second] = planned(free).answers, planned(huge).answers

    assert (first.state, first.message) == ("Ready", "nobody is in the way")
    assert second.state == "Ready"
    assert second.message.startswith("home can't hold this job")


def test_pods_of_no_deployment_are_told_and_not_waited_for() -> None:
    """Nothing replaces a bare pod, so it will be preempted."""
    cluster = TinyCluster(replicas=0, workloads=[job()])
    labels = {"vk-provider.dev/burst": "true"}
    cluster.pods["bare"] = PodView("bare", "web", "bare", HOME[0], 1, is_ready=True, labels=labels)

    [answer] = planned(cluster).answers

    assert answer.state == "Ready"
    assert answer.message == "nobody is in the way; 1 of no Deployment will be preempted"


def test_one_job_at_a_time() -> None:
    """The more important first; whoever is behind waits for his turn."""
    later = job(uid="b", count=1, created_at=START + timedelta(seconds=1))
    urgent = job(uid="c", count=1, priority=200, created_at=START + timedelta(seconds=2))
    cluster = TinyCluster(workloads=[later, urgent])

    assert [one.uid for one in waiting(cluster.picture(), SELECTION, LIMITS)] == ["c", "b"]
    assert [answer.workload.uid for answer in planned(cluster).answers] == ["c"]


@pytest.mark.parametrize(
    "other",
    [
        {"checks": {"somebody-elses": "Pending"}},
        {"checks": {CHECK: "Ready"}},
        {"is_admitted": True},
        {"is_finished": True},
        {"has_quota": False},
        {"priority_classes": frozenset({"batch"})},
    ],
)
def test_what_does_not_wait_for_us_moves_nobody(other: dict[str, Any]) -> None:
    """Neither jobs of others nor those that are in."""
    cluster = TinyCluster(workloads=[job(**other)])
    assert planned(cluster) == Plan()


def test_room_is_made_for_what_a_topology_keeps_out() -> None:
    """Kueue reserves no quota there while plain pods hold the GPUs; it then admits by itself."""
    why = 'topology "host" doesn\'t allow to fit any of 2 pod(s)'
    cluster = TinyCluster(workloads=[job(has_quota=False, checks={}, pending_why=why)])

    play(cluster, 20)

    assert cluster.least_ready == 16
    assert [cluster.on(name) for name in HOME] == [0, 0]


def test_making_room_without_a_deadline_is_given_up_and_tried_again() -> None:
    """Nobody says when a topology's job is too late, so it ends for a while by itself."""
    why = "topology"
    workload = job(has_quota=False, checks={}, pending_why=why)
    cluster = TinyCluster(outside_slots=0, workloads=[workload])

    first = planned(cluster)
    assert first.leaving
    assert first.begun == {"job": START}
    cluster.now = START + timedelta(seconds=100)
    second = planned(cluster, first.begun)
    assert not second.leaving
    assert second.begun == {"job": START}
    cluster.now = START + timedelta(seconds=400)
    third = planned(cluster, second.begun)
    assert third.leaving
    assert third.begun == {"job": cluster.now}


def test_a_check_without_a_time_begins_now() -> None:
    """An odd answer of the API server holds nobody for ever: its own time comes with the state."""
    cluster = TinyCluster(workloads=[job(checks_since={})])
    [answer] = planned(cluster).answers
    assert answer.state == "Pending"


def test_room_that_kueue_does_not_see_is_told() -> None:
    """Plain pods that leave a node are no news to it."""
    kept_out = job(has_quota=False, checks={}, pending_why="topology", count=1)
    assert planned(TinyCluster(replicas=2, workloads=[kept_out])).is_room_unnoticed
    assert not planned(TinyCluster(workloads=[kept_out])).is_room_unnoticed
    assert not planned(TinyCluster(replicas=2, workloads=[job(count=1)])).is_room_unnoticed
