"""Pods come home by replacements that are Ready before they go."""

from dataclasses import replace

import pytest

from tests.unit.bursting.tiny_cluster import CHECK, HOME, OUTSIDE, START, TinyCluster, job
from vk_provider.bursting import names
from vk_provider.bursting.evacuation import EvacuationLimits, Look, plan
from vk_provider.bursting.limits import HomecomingLimits
from vk_provider.bursting.moves import Deployment, Phase, Relocation, Scaler
from vk_provider.bursting.picture import Owner, Picture, PodView, Selection, VirtualNode
from vk_provider.bursting.surging import coming_home

LIMITS = HomecomingLimits(max_in_flight=2, max_in_flight_per_workload=2, surge=True)
SELECTION = Selection()


def replica(uid: str, node: str, owner: str = "rs") -> PodView:
    """A replica of inference."""
    labels = {names.BURST_LABEL: "true"}
    return PodView(uid, "web", uid, node, 1, labels=labels, owner=Owner("ReplicaSet", "r", owner))


def home_of(*pods: PodView, **nodes: float) -> list[str]:
    """Who comes home, of two Deployments, from nodes at these prices."""
    virtual = [VirtualNode(n, gate="return", usd_per_hour=p, running=1) for n, p in nodes.items()]
    deployments = [
        Deployment(uid, "web", uid, 4, revisions=frozenset({uid})) for uid in ("rs", "other")
    ]
    picture = Picture(virtual=virtual, pods=pods)
    return [pod.uid for pod in coming_home(picture, deployments, SELECTION, LIMITS, 9)]


def test_the_dearest_node_is_left_first() -> None:
    """And no more at once than is allowed."""
    pods = [replica("a", "cheap"), replica("b", "dear"), replica("c", "dear", "other")]
    assert home_of(*pods, cheap=1, dear=2) == ["b", "c"]


def test_a_node_that_is_not_to_be_left_keeps_its_pods() -> None:
    """Nor does anything move that is ending, or that no Deployment would replace."""
    bare = replace(replica("bare", "dear"), owner=None)
    ending = replace(replica("ending", "dear"), evicted_at=START)
    assert home_of(bare, ending, replica("home", "home-0"), dear=2) == []


def test_who_is_on_the_way_stays_chosen() -> None:
    """As many as there are replacements, and those that are marked."""
    state = Relocation(Phase.SURGING, 4, 5, START, homeward=True)
    moving = Deployment("d", "web", "d", 5, revisions=frozenset({"rs"}), relocation=state)
    virtual = [VirtualNode("x", gate="return")]
    picture = Picture(virtual=virtual, pods=[replica("a", "x"), replica("b", "x")])

    assert [p.uid for p in coming_home(picture, [moving], SELECTION, LIMITS, 0)] == ["a"]
    shrinking = replace(moving, relocation=replace(state, phase=Phase.SHRINKING))
    assert coming_home(picture, [shrinking], SELECTION, LIMITS, 9) == []


def test_what_has_begun_is_finished_under_hold() -> None:
    """The replacements at home may be why home is full; but a move outwards is no homecoming."""
    state = Relocation(Phase.SURGING, 4, 5, START, homeward=True)
    moving = Deployment("d", "web", "d", 5, revisions=frozenset({"rs"}), relocation=state)
    picture = Picture(virtual=[VirtualNode("x", gate="hold")], pods=[replica("a", "x")])

    assert [p.uid for p in coming_home(picture, [moving], SELECTION, LIMITS, 0)] == ["a"]
    outwards = replace(moving, relocation=replace(state, homeward=False))
    assert coming_home(picture, [outwards], SELECTION, LIMITS, 0) == []
    assert coming_home(picture, [replace(moving, relocation=None)], SELECTION, LIMITS, 9) == []


def test_a_full_home_calls_nobody() -> None:
    """A replacement must find a place there."""
    deployments = [Deployment("d", "web", "d", 1, revisions=frozenset({"rs"}))]
    picture = Picture(virtual=[VirtualNode("x", gate="return")], pods=[replica("a", "x")])
    assert coming_home(picture, deployments, SELECTION, LIMITS, 0) == []


@pytest.mark.parametrize("scaler", [None, Scaler("hpa", 1, 16)])
def test_out_and_home_again_without_a_replica_less(scaler: Scaler | None) -> None:
    """Sixteen of sixteen serve while training comes and goes."""
    cluster = TinyCluster(workloads=[job()], scaler=scaler)
    limits = EvacuationLimits(frozenset({CHECK}))
    most_moving = 0
    for turn in range(140):
        if turn == 20:
            assert cluster.on(OUTSIDE) == 16
            cluster.held.clear()
            cluster.gate = "return"
        picture = cluster.picture()
        spare = 16 - cluster.on(HOME[0]) - cluster.on(HOME[1])
        coming = coming_home(picture, [cluster.deployment], SELECTION, LIMITS, spare)
        look = Look(picture, [cluster.deployment], cluster.now, also_leaving=coming)
        found = plan(look, SELECTION, limits)
        cluster.write(found.moves)
        cluster.answer(found.answers)
        cluster.step()
        if turn > 20:
            most_moving = max(most_moving, len(coming))

    assert cluster.least_ready == 16
    assert cluster.on(OUTSIDE) == 0
    assert cluster.on(HOME[0]) + cluster.on(HOME[1]) == 16
    assert most_moving == 2
    assert cluster.deployment.scaler == scaler
    assert not cluster.deployment.has_annotation
