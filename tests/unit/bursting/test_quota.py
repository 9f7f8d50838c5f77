"""Quotas follow the nodes: up at once, down late, and never over somebody else's hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vk_provider.bursting.picture import HomeNode, VirtualNode
from vk_provider.bursting.quota import Patience, QuotaPlan, QuotaRules, plan
from vk_provider.bursting.quota_objects import FlavorView, QueueView, QuotaLine
from vk_provider.taints import Taint, Toleration

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"
HOME = FlavorView("home", {"pool": "home"})
RULES = QuotaRules()
LATE = {("train", "home"): Patience(NOW - timedelta(hours=1))}


def node(name: str, gpus: int = 8, **how: Any) -> HomeNode:
    """A node of the flavor."""
    return HomeNode(name, gpus=gpus, labels={"pool": "home"}, **how)


def line(nominal: int, name: str = "train", **how: Any) -> QuotaLine:
    """The GPU quota of a queue."""
    return QuotaLine(name, how.pop("flavor", "home"), GPU, 0, 0, 2, str(nominal), nominal, **how)


def queue(nominal: int, name: str = "train", **how: Any) -> QueueView:
    """A queue with one quota; what is no field of the queue is the quota's."""
    own = {key: how.pop(key) for key in ("stop_policy", "orchestrator") if key in how}
    return QueueView(name, lines=(line(nominal, name, **how),), **own)


def planned(
    nodes: Sequence[HomeNode | VirtualNode],
    *queues: QueueView,
    rules: QuotaRules = RULES,
    flavors: Sequence[FlavorView] = (HOME,),
    memory: Mapping[tuple[str, str], Patience] | None = None,
    now: datetime = NOW,
) -> QuotaPlan:
    """One look."""
    return plan(nodes, flavors, queues, rules, memory or {}, now)


def amounts(found: QuotaPlan) -> dict[str, int]:
    """The new quotas."""
    return {change.line.queue: change.amount for change in found.changes}


def test_a_quota_that_is_right_is_left_alone() -> None:
    """And nothing is remembered against it."""
    found = planned([node("a"), node("b")], queue(16))

    assert (found.changes, found.refusals) == ((), ())
    assert found.memory == {("train", "home"): Patience()}
    assert found.capacity == {"home": 16}


def test_a_new_node_counts_at_once() -> None:
    """Idle GPUs are what the bridge is for."""
    assert amounts(planned([node("a"), node("b"), node("c")], queue(16))) == {"train": 24}


def test_growth_may_be_bounded() -> None:
    """In steps."""
    rules = QuotaRules(grow_step=4)

    assert amounts(planned([node("a"), node("b")], queue(8), rules=rules)) == {"train": 12}


def test_a_lost_node_counts_only_after_a_while() -> None:
    """A node that restarts is back before."""
    first = planned([node("a"), node("b", is_ready=False)], queue(16))
    soon = NOW + timedelta(seconds=599)
    second = planned([node("a")], queue(16), memory=first.memory, now=soon)
    late = NOW + timedelta(seconds=600)
    third = planned([node("a")], queue(16), memory=second.memory, now=late)

    assert (first.changes, second.changes) == ((), ())
    assert amounts(third) == {"train": 8}
    assert third.memory == {("train", "home"): Patience(NOW, late)}


def test_a_node_that_came_back_is_forgiven() -> None:
    """The patience begins anew."""
    found = planned([node("a"), node("b")], queue(16), memory=LATE)

    assert found.memory == {("train", "home"): Patience()}


def test_shrinking_goes_in_steps_with_pauses() -> None:
    """Each step is seen before the next."""
    rules = QuotaRules(shrink_step=8)
    first = planned([], queue(32), rules=rules, memory=LATE)
    soon = NOW + timedelta(seconds=299)
    second = planned([], queue(24), rules=rules, memory=first.memory, now=soon)
    late = NOW + timedelta(seconds=300)
    third = planned([], queue(24), rules=rules, memory=first.memory, now=late)

    assert amounts(first) == {"train": 24}
    assert second.changes == ()
    assert amounts(third) == {"train": 16}


def test_what_is_reserved_is_never_taken_away() -> None:
    """Nothing would be evicted by it, and the queue could not preempt any more."""
    busy = queue(16, reserved=12)

    assert amounts(planned([node("a")], busy, memory=LATE)) == {"train": 12}
    held = queue(16, reserved=16)
    assert planned([node("a")], held, memory=LATE).changes == ()
    assert amounts(
        planned([node("a")], held, memory=LATE, rules=QuotaRules(below_reserved=True))
    ) == {"train": 8}


@pytest.mark.parametrize(
    ("sick", "words"),
    [
        (node("b", is_ready=False), "b is not Ready"),
        (node("b", is_cordoned=True), "b is cordoned"),
        (node("b", gpu_health="dead"), "b has gpu-health=dead"),
        (
            node(
                "b",
                gpu_health="training-unfit",
                taints=(Taint("vk-provider.dev/gpu-health", "training-unfit"),),
            ),
            "b has the taint vk-provider.dev/gpu-health=training-unfit",
        ),
        (node("b", taints=(Taint("maintenance"),)), "b has the taint maintenance"),
    ],
)
def test_a_node_that_can_run_none_of_it_does_not_count(sick: HomeNode, words: str) -> None:
    """And the reason is told."""
    (change,) = planned([node("a"), sick], queue(16), memory=LATE).changes

    assert change.amount == 8
    assert change.why == f"1 of 2 nodes of flavor home can run it, 8 are its part; {words}"


def test_a_taint_that_the_flavor_tolerates_does_not_matter() -> None:
    """Kueue adds the flavor's tolerations to its pods."""
    flavor = replace(HOME, tolerations=(Toleration("dedicated", "Exists"),))
    dedicated = node("a", taints=(Taint("dedicated", "training"),))

    assert amounts(planned([dedicated], queue(0), flavors=[flavor])) == {"train": 8}


def test_only_whole_pods_count() -> None:
    """Seven of eight GPUs are none to a pod that wants eight."""
    rules = QuotaRules(per_pod=8)

    assert planned([node("a", 7), node("b", 20)], queue(0), rules=rules).capacity == {"home": 16}


def test_headroom_and_a_floor_are_taken_off() -> None:
    """Percent first."""
    rules = QuotaRules(percent=90, reserve=2)

    assert planned([node("a", 10)], queue(0), rules=rules).capacity == {"home": 7}
    assert planned([node("a", 1)], queue(0), rules=rules).capacity == {"home": 0}


def test_queues_that_share_a_flavor_share_its_gpus() -> None:
    """By their present quotas, or by the weights that were given."""
    both = (queue(12, "a"), queue(4, "b"))
    nodes = [node("x"), node("y"), node("z")]

    assert amounts(planned(nodes, *both)) == {"a": 18, "b": 6}
    rules = QuotaRules(shares={"a": 1, "b": 2})
    assert amounts(planned(nodes, queue(0, "a"), queue(0, "b"), rules=rules)) == {"a": 8, "b": 16}
    assert amounts(planned(nodes, queue(0, "a"), queue(0, "b"))) == {"a": 12, "b": 12}


def test_a_queue_grows_only_into_what_no_other_holds() -> None:
    """The others shrink late, and two promises of one GPU are one too many."""
    rules = QuotaRules(shares={"a": 1, "b": 2})
    nodes = [node("x"), node("y"), node("z")]

    assert amounts(planned(nodes, queue(12, "a"), queue(4, "b"), rules=rules)) == {"b": 12}


def test_quotas_that_are_not_ours_are_taken_off_first() -> None:
    """Σ over a flavor stays what its nodes can give."""
    rules = QuotaRules(queues=frozenset({"a"}))
    nodes = [node("x"), node("y")]

    assert amounts(planned(nodes, queue(0, "a"), queue(6, "b"), rules=rules)) == {"a": 10}
    crowded = planned(nodes, queue(1, "a"), queue(60, "b"), rules=rules, memory={})
    assert crowded.memory["a", "home"].too_large_since == NOW


def test_a_flavor_outside_counts_what_the_virtual_node_offers() -> None:
    """Unless its gate is shut: a quota there would be a promise that nobody keeps."""
    flavor = FlavorView(
        "burst",
        {"type": "virtual-kubelet"},
        (Toleration("virtual-kubelet.io/provider", "Exists"),),
    )
    provider = Taint("virtual-kubelet.io/provider", "vk-provider")
    labels = {"type": "virtual-kubelet"}
    opened = VirtualNode("burst", gpus=20, labels=labels, taints=(provider,))
    shut = replace(opened, taints=(provider, Taint("vk-provider.dev/gate", "hold")))
    outside = queue(0, flavor="burst")

    assert amounts(planned([opened], outside, flavors=[flavor])) == {"train": 20}
    assert planned([shut], outside, flavors=[flavor]).capacity == {"burst": 0}


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (queue(8, orchestrator="the orchestrator nodes"), "managed by the orchestrator nodes"),
        (queue(8, stop_policy="Hold"), "its stopPolicy is Hold"),
        (queue(8, flavor="gone"), "there is no ResourceFlavor of that name"),
        (queue(8, flavor="any"), "the flavor has no nodeLabels"),
        (queue(8, flavor="twin"), "node a belongs to flavor home too and would be counted twice"),
        (queue(0, lending_limit=20), "its lendingLimit 20 is larger than 16"),
    ],
)
def test_a_quota_that_must_not_be_touched_is_refused_with_the_reason(
    refused: QueueView, words: str
) -> None:
    """And with what to do about it."""
    twin = FlavorView("twin", {"zone": "x"})
    flavors = [HOME, FlavorView("any")]
    first = node("a")
    if refused.lines[0].flavor == "twin":
        flavors.append(twin)
        first = replace(first, labels={"pool": "home", "zone": "x"})
    beside = [queue(8, "other")] if twin in flavors else []
    found = planned([first, node("b")], refused, *beside, flavors=flavors)

    assert "train" not in amounts(found)
    assert words in found.refusals[0].why


def test_a_flavor_that_no_queue_uses_counts_nothing_twice() -> None:
    """It is somebody's draft."""
    flavors = [HOME, FlavorView("draft", {"pool": "home"})]

    assert amounts(planned([node("a")], queue(0), flavors=flavors)) == {"train": 8}


def test_a_policy_of_none_and_other_resources_are_no_obstacle() -> None:
    """cpu is nobody's business here."""
    cpu = QuotaLine("train", "home", "cpu", 0, 0, 0, "4", 4)
    found = planned([node("a")], QueueView("train", lines=(cpu, line(0)), stop_policy="None"))

    assert amounts(found) == {"train": 8}


def test_the_patch_fails_if_anything_moved() -> None:
    """It tests the names and the old number by their places."""
    (change,) = planned([node("a")], queue(0)).changes
    flavor = "/spec/resourceGroups/0/flavors/0"

    assert change.patch() == [
        {"op": "test", "path": f"{flavor}/name", "value": "home"},
        {"op": "test", "path": f"{flavor}/resources/2/name", "value": GPU},
        {"op": "test", "path": f"{flavor}/resources/2/nominalQuota", "value": "0"},
        {"op": "replace", "path": f"{flavor}/resources/2/nominalQuota", "value": "8"},
    ]


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=5),
    st.lists(st.integers(0, 16), max_size=6),
)
def test_growing_quotas_never_exceed_the_nodes(quotas: list[int], gpus: list[int]) -> None:
    """Whatever was there before; and all of a flavor is given away where nothing must shrink."""
    nodes = [node(f"n{at}", count) for at, count in enumerate(gpus)]
    queues = [queue(amount, f"q{at}") for at, amount in enumerate(quotas)]
    new = dict(enumerate(quotas)) | {
        int(name[1:]): amount for name, amount in amounts(planned(nodes, *queues)).items()
    }

    assert sum(new.values()) == max(sum(gpus), sum(quotas))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 40)), min_size=20, max_size=60))
def test_nodes_that_come_and_go_never_make_a_quota_jump_down(looks: list[tuple[int, int]]) -> None:
    """In steps, with pauses, not below what is reserved, and only after a long while."""
    rules = QuotaRules(shrink_step=4, hold_down_seconds=120, shrink_every_seconds=60)
    nominal, memory = 32, dict[tuple[str, str], Patience]()
    shrank: list[datetime] = []
    enough_at = NOW
    for number, (count, reserved) in enumerate(looks):
        now = NOW + timedelta(seconds=15 * number)
        nodes = [node(f"n{at}") for at in range(count)]
        if 8 * count >= nominal:
            enough_at = now
        held = min(reserved, nominal)
        found = planned(nodes, queue(nominal, reserved=held), rules=rules, memory=memory, now=now)
        memory = dict(found.memory)
        new = amounts(found).get("train", nominal)
        if new < nominal:
            assert nominal - new <= 4
            assert new >= held
            assert now - enough_at >= timedelta(seconds=120)
            assert not shrank or now - shrank[-1] >= timedelta(seconds=60)
            shrank.append(now)
        assert new <= max(nominal, 8 * count)
        nominal = new
