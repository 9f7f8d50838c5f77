"""Pods of one Deployment move without a Ready replica less: step by step."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bursting.tiny_cluster import HOME, OUTSIDE, START, TinyCluster
from vk_provider.bursting.moves import (
    LAST_COST,
    Deployment,
    Move,
    Phase,
    Relocation,
    Scale,
    Scaler,
    ScaleScaler,
    SetCost,
)
from vk_provider.bursting.picture import PodView
from vk_provider.bursting.relocation import relocate

DEPLOYMENT = Deployment("d", "web", "chat", 2, revisions=frozenset({"rs"}))
SURGING = Relocation(Phase.SURGING, 2, 3, START)
SHRINKING = Relocation(Phase.SHRINKING, 2, 2, START)


def pod(uid: str, *, ready: bool = True, cost: str | None = None) -> PodView:
    """A replica."""
    return PodView(uid, "web", uid, "n", is_ready=ready, deletion_cost=cost)


def standing(state: Relocation, replicas: int | None = None, **more: Any) -> Deployment:
    """A Deployment with an annotation of ours."""
    wanted = state.target if replicas is None else replicas
    found = replace(DEPLOYMENT, replicas=wanted, relocation=state, has_annotation=True)
    return replace(found, **more)


def moves(
    deployment: Deployment, *pods: PodView, leaving: str = "", hurry: bool = False
) -> list[Move]:
    """What is missing."""
    return relocate(deployment, pods, leaving.split(), START, hurry=hurry)


def test_replicas_are_raised_and_the_state_is_written_in_one_write() -> None:
    """So that no crash can separate them."""
    assert moves(DEPLOYMENT, pod("a"), pod("b"), leaving="a") == [Scale(DEPLOYMENT, 3, SURGING)]


@pytest.mark.parametrize(
    ("deployment", "hurry"),
    [(replace(DEPLOYMENT, is_settled=False), False), (DEPLOYMENT, True)],
)
def test_nothing_begins_in_a_rollout_or_too_late(deployment: Deployment, hurry: bool) -> None:
    """A rollout moves the same numbers."""
    assert not moves(deployment, pod("a"), pod("b"), leaving="a", hurry=hurry)


def test_a_terminating_pod_need_not_be_asked() -> None:
    """It goes already."""
    going = replace(pod("a"), evicted_at=START)
    assert not moves(DEPLOYMENT, going, pod("b"), leaving="a")


def test_an_annotation_that_nobody_can_read_is_removed() -> None:
    """The replicas stay as they are."""
    deployment = replace(DEPLOYMENT, has_annotation=True)
    assert moves(deployment, pod("a")) == [Scale(deployment, 2, None)]


def test_replacements_are_awaited_then_the_leaving_are_marked_then_replicas_fall() -> None:
    """Each only when the one before is seen."""
    deployment = standing(SURGING)
    leaving, stays = pod("a"), pod("b")

    assert not moves(deployment, leaving, stays, pod("c", ready=False), leaving="a")
    assert moves(deployment, leaving, stays, pod("c"), leaving="a") == [
        SetCost("web", "a", "a", LAST_COST)
    ]
    marked = replace(leaving, deletion_cost=LAST_COST)
    assert moves(deployment, marked, stays, pod("c"), leaving="a") == [
        Scale(deployment, 2, SHRINKING)
    ]


def test_a_cost_that_was_there_is_remembered_first_and_given_back() -> None:
    """Whoever set it finds it again."""
    deployment = standing(SURGING)
    costly = pod("a", cost="5")
    remembering = replace(SURGING, costs={"a": "5"})

    assert moves(deployment, costly, pod("b"), pod("c"), leaving="a") == [
        Scale(deployment, 3, remembering)
    ]
    stays = replace(costly, deletion_cost=LAST_COST)
    shrunk = standing(replace(SHRINKING, costs={"a": "5"}))
    assert moves(shrunk, stays, pod("b")) == [SetCost("web", "a", "a", "5")]


def test_the_annotation_goes_last() -> None:
    """After the ReplicaSet is done, and after the marks."""
    deployment = standing(SHRINKING)
    assert not moves(deployment, pod("a"), pod("b"), pod("c"))
    marked = pod("b", cost=LAST_COST)
    assert moves(deployment, pod("a"), marked) == [SetCost("web", "b", "b", None)]
    assert moves(deployment, pod("a"), pod("b")) == [Scale(deployment, 2, None)]


def test_a_pod_that_comes_to_stay_where_it_must_not_is_moved_as_well() -> None:
    """A replacement landed in the place that was being freed."""
    deployment = standing(SHRINKING)
    again = Scale(deployment, 3, replace(SURGING, target=3))
    assert moves(deployment, pod("a"), pod("b"), leaving="b") == [again]
    assert moves(deployment, pod("a"), pod("b"), leaving="b", hurry=True) == [
        Scale(deployment, 2, None)
    ]


def test_a_new_wish_of_the_owner_counts() -> None:
    """Somebody scales while pods move: the surge comes on top."""
    deployment = standing(SURGING, replicas=5)
    four = [pod(uid) for uid in "abcde"]
    assert moves(deployment, *four, leaving="a") == [
        Scale(deployment, 6, replace(SURGING, replicas=5, target=6))
    ]


def test_a_wish_that_equals_the_surge_is_remembered() -> None:
    """Nothing is to be raised, and what counts as asked for is another number."""
    deployment = standing(replace(SURGING, target=9), replicas=3)
    three = [pod(uid) for uid in "abc"]
    assert moves(deployment, *three, leaving="a") == [
        Scale(deployment, 4, Relocation(Phase.SURGING, 3, 4, START))
    ]


def test_who_no_longer_has_to_go_lets_the_surge_fall() -> None:
    """The reason went away."""
    deployment = standing(SURGING)
    assert moves(deployment, pod("a"), pod("b"), pod("c")) == [Scale(deployment, 2, SHRINKING)]


def test_at_the_deadline_nobody_is_waited_for() -> None:
    """Those that are Ready elsewhere count, the others are given up."""
    deployment = standing(SURGING)
    marked = pod("a", cost=LAST_COST)
    assert moves(deployment, marked, pod("b"), leaving="a", hurry=True) == [
        Scale(deployment, 2, SHRINKING)
    ]


def test_an_autoscaler_is_widened_after_its_bounds_are_written_down() -> None:
    """And before the replicas are raised, which it would lower at once."""
    found = Scaler("hpa", 1, 2)
    wide = Scaler("hpa", 3, 3)
    begun = Relocation(Phase.SURGING, 2, 2, START, found, bound=3)
    pods = pod("a"), pod("b")

    fresh = replace(DEPLOYMENT, scaler=found)
    assert moves(fresh, *pods, leaving="a") == [Scale(fresh, 2, begun)]
    written = standing(begun, scaler=found)
    assert moves(written, *pods, leaving="a") == [ScaleScaler(written, wide)]
    widened = standing(begun, scaler=wide)
    assert moves(widened, *pods, leaving="a") == [Scale(widened, 3, replace(begun, target=3))]


def test_an_autoscaler_is_restored_before_the_replicas_fall() -> None:
    """Unless somebody else wrote into it meanwhile."""
    found = Scaler("hpa", 1, 2)
    state = Relocation(Phase.SURGING, 2, 3, START, found, bound=3)
    lower = replace(state, phase=Phase.SHRINKING, target=2)
    pods = pod("a"), pod("b"), pod("c")

    ours = standing(state, scaler=Scaler("hpa", 3, 3))
    assert moves(ours, *pods) == [ScaleScaler(ours, found), Scale(ours, 2, lower)]
    theirs = standing(state, scaler=Scaler("hpa", 7, 9))
    assert moves(theirs, *pods) == [Scale(theirs, 2, lower)]
    gone = standing(state, scaler=None)
    assert moves(gone, *pods) == [Scale(gone, 2, lower)]


@given(st.data())
def test_no_ready_replica_is_missed_whatever_is_lost(data: st.DataObject) -> None:
    """Writes are lost, looks are late, and more pods are to go: sixteen serve all the time."""
    cluster = TinyCluster()
    for _ in range(12):
        leaving = {uid for uid, one in cluster.pods.items() if one.node == HOME[0]}
        if data.draw(st.booleans()):
            leaving |= {uid for uid, one in cluster.pods.items() if one.node == HOME[1]}
        found = relocate(cluster.deployment, list(cluster.pods.values()), leaving, cluster.now)
        kept = data.draw(st.integers(0, len(found)))
        cluster.write(tuple(found[:kept]))
        cluster.step()
    for _ in range(30):
        leaving = {uid for uid, one in cluster.pods.items() if one.node in HOME}
        cluster.write(
            tuple(relocate(cluster.deployment, list(cluster.pods.values()), leaving, cluster.now))
        )
        cluster.step()

    assert cluster.least_ready == 16
    assert cluster.on(OUTSIDE) == 16
    assert not cluster.deployment.has_annotation
