"""Taints come at once and go late, within a budget, and only our own."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vk_provider.bursting.gpu_findings import SEVERITY, Finding
from vk_provider.bursting.gpu_health import (
    Evidence,
    HealthChange,
    HealthPlan,
    HealthPolicy,
    mark_of,
    marked,
    plan,
)
from vk_provider.bursting.picture import HomeNode

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=30)
SET_BY = "vk-provider.dev/gpu-health-set-by"
ALL = HealthPolicy(max_nodes_percent=100)
NAMES = [f"home-{number}" for number in range(10)]


def node(name: str = "home-0", taint: str | None = None, mark: str | None = None) -> HomeNode:
    """A home node; `mark` is the value that our annotation names."""
    annotations = {SET_BY: mark_of(mark, ["r"], NOW)} if mark else {}
    return HomeNode(name, uid=f"uid-{name}", gpus=8, gpu_health=taint, annotations=annotations)


def bad(name: str = "home-0", verdict: str = "training-unfit", rule: str = "HotGpu") -> Finding:
    """A finding."""
    return Finding(name, verdict, rule, "GPU 1")


def planned(
    nodes: Sequence[HomeNode],
    *found: Finding,
    policy: HealthPolicy = ALL,
    since: Mapping[str, datetime] | None = None,
    now: datetime = NOW,
    **how: Any,
) -> HealthPlan:
    """One look, with every node measured unless told otherwise."""
    measured = how.pop("measured", frozenset(one.name for one in nodes))
    return plan(nodes, Evidence(found, measured, **how), policy, since or {}, now)


def taints(found: HealthPlan) -> dict[str, str | None]:
    """The new taints."""
    return {change.node: change.new for change in found.changes}


def test_a_sick_node_is_tainted_and_marked_at_once() -> None:
    """The mark says whose the taint is, since when, and why."""
    (change,) = planned([node()], bad(), bad(rule="Throttled")).changes

    mark = {"by": "vk-provider", "value": "training-unfit", "since": "2026-05-01T12:00:00Z"}
    assert json.loads(change.mark or "") == mark | {"rules": ["HotGpu", "Throttled"]}
    why = "HotGpu: GPU 1; Throttled: GPU 1"
    assert change == HealthChange("home-0", "uid-home-0", None, "training-unfit", change.mark, why)


def test_the_worst_finding_decides() -> None:
    """And comes first in the words, of which there are not too many."""
    found = [bad(rule=f"Rule{number}") for number in range(4)]
    (change,) = planned([node()], *found, bad(verdict="dead", rule="Xid")).changes

    assert change.new == "dead"
    assert change.why == "Xid: GPU 1; Rule0: GPU 1; Rule1: GPU 1; and 2 more"


def test_a_healthy_node_is_left_alone() -> None:
    """And so is one whose taint is right."""
    right = node(taint="drain", mark="drain")

    assert planned([node()]) == HealthPlan()
    assert planned([right], bad(verdict="drain")) == HealthPlan()


def test_a_worse_finding_makes_the_taint_worse_at_once() -> None:
    """Whatever the budget: the node is tainted already."""
    policy = HealthPolicy(max_nodes_percent=0)
    found = planned([node(taint="training-unfit", mark="training-unfit")], bad(verdict="dead"),
                    policy=policy)  # fmt: skip

    assert taints(found) == {"home-0": "dead"}


def test_a_taint_goes_only_after_a_clean_while() -> None:
    """Counted from the first clean look; a relapse begins anew."""
    ours = [node(taint="training-unfit", mark="training-unfit")]
    first = planned(ours)
    soon = planned(ours, since=first.better_since, now=LATER - timedelta(seconds=1))
    relapse = planned(ours, bad(), since=soon.better_since, now=LATER)
    late = planned(ours, since=soon.better_since, now=LATER)

    assert (first.changes, first.better_since) == ((), {"home-0": NOW})
    assert (soon.changes, soon.better_since) == ((), {"home-0": NOW})
    assert (relapse.changes, relapse.better_since) == ((), {})
    (change,) = late.changes
    assert (change.old, change.new, change.mark) == ("training-unfit", None, None)
    assert change.why == "nothing worse was found for 30 min"
    assert late.better_since == {}


def test_a_taint_becomes_a_lighter_one_after_the_same_while() -> None:
    """Dead, and now only hot."""
    ours = [node(taint="dead", mark="dead")]
    (change,) = planned(ours, bad(), since={"home-0": NOW}, now=LATER).changes

    assert (change.old, change.new) == ("dead", "training-unfit")
    assert change.why == "nothing worse was found for 30 min: HotGpu: GPU 1"


@pytest.mark.parametrize("how", [{"is_complete": False}, {"measured": frozenset()}])
def test_silence_is_no_good_news(how: Any) -> None:
    """A query that failed, or a node without measurements: nothing is released."""
    ours = [node(taint="training-unfit", mark="training-unfit")]
    found = planned(ours, since={"home-0": NOW}, now=LATER, **how)

    assert found == HealthPlan()


def test_what_somebody_else_has_set_is_never_touched() -> None:
    """A taint without our mark, or with another value than our mark says."""
    foreign = [node("a", taint="drain"), node("b", taint="dead", mark="training-unfit")]
    since = {"a": NOW, "b": NOW}

    assert planned(foreign, since=since, now=LATER).changes == ()
    assert planned(foreign, bad("a", "dead"), now=LATER).changes == ()


def test_a_taint_that_a_person_lifted_stays_lifted() -> None:
    """Until it was clean for a while (then the mark goes), or something worse is found."""
    lifted = [node(mark="training-unfit")]
    (worse,) = planned(lifted, bad(verdict="dead")).changes
    (clean,) = planned(lifted, since={"home-0": NOW}, now=LATER).changes

    assert planned(lifted, bad()).changes == ()
    assert (worse.old, worse.new) == (None, "dead")
    assert (clean.old, clean.new, clean.mark) == (None, None, None)


def test_a_person_may_keep_us_off_a_node() -> None:
    """By a label."""
    ignored = replace(node(), labels={"vk-provider.dev/gpu-health-ignore": "true"})

    assert planned([ignored], bad(verdict="dead")) == HealthPlan()


def test_the_budget_holds_and_the_worst_go_first() -> None:
    """Three of ten; those held back are told with what to do."""
    nodes = [node(name) for name in NAMES]
    found = [bad(name) for name in NAMES[:4]] + [bad("home-9", "dead")]
    result = planned(nodes, *found, policy=HealthPolicy(30))

    assert taints(result) == {
        "home-9": "dead",
        "home-0": "training-unfit",
        "home-1": "training-unfit",
    }
    assert [one.node for one in result.held_back] == ["home-2", "home-3"]
    assert result.held_back[0].why == (
        "HotGpu: GPU 1; not tainted: 0 of 10 home nodes are tainted already, and maxNodesPercent "
        "is 30: look at the nodes, or raise it"
    )


def test_taints_of_others_count_towards_the_budget() -> None:
    """They are just as unusable."""
    nodes = [node(name, taint="drain") for name in NAMES[:3]] + [node(name) for name in NAMES[3:]]

    assert planned(nodes, bad("home-5"), policy=HealthPolicy(30)).changes == ()


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[]", '{"value": "sad"}', '{"value": [3]}', "[" * 10**5]
)
def test_a_mark_that_is_none_is_no_mark(text: str) -> None:
    """Whoever wrote it."""
    assert marked({SET_BY: text}) is None


VERDICTS = st.sampled_from([verdict for verdict in SEVERITY if verdict is not None])


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), VERDICTS), max_size=20),
    st.dictionaries(st.sampled_from(NAMES), VERDICTS),
    st.integers(0, 100),
)
def test_never_more_than_the_budget_is_tainted(
    found: list[tuple[str, str]], foreign: dict[str, str], percent: int
) -> None:
    """Unless others have done so already."""
    nodes = [node(name, taint=foreign.get(name)) for name in NAMES]
    result = planned(
        nodes, *(bad(*one) for one in found), policy=HealthPolicy(max_nodes_percent=percent)
    )

    tainted = set(foreign) | {change.node for change in result.changes if change.new}
    assert len(tainted) <= max(len(foreign), percent // 10)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=40, max_size=80))
def test_a_sensor_that_flickers_moves_a_taint_rarely(looks: list[tuple[bool, bool]]) -> None:
    """Whatever it says every two minutes: no two releases within the time to release."""
    home, since = node(), dict[str, datetime]()
    released: list[datetime] = []
    for number, (is_bad, is_measured) in enumerate(looks):
        now = NOW + timedelta(minutes=2 * number)
        found = planned(
            [home],
            *([bad()] if is_bad else []),
            since=since,
            now=now,
            measured=frozenset({home.name}) if is_measured else frozenset(),
        )
        since = dict(found.better_since)
        for change in found.changes:
            assert change.old == home.gpu_health
            annotations = {SET_BY: change.mark} if change.mark else {}
            home = replace(home, gpu_health=change.new, annotations=annotations)
            if change.new is None:
                released.append(now)
        assert home.gpu_health == "training-unfit" or not is_bad

    pauses = [later - sooner for sooner, later in itertools.pairwise(released)]
    assert all(pause >= timedelta(seconds=ALL.release_after_seconds) for pause in pauses)
