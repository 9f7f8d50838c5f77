"""What a gate is decided on, out of one look at the cluster."""

from dataclasses import replace
from typing import Any

from tests.unit.bursting.views import NOW, ago, home, pod, virtual
from vk_provider.bursting import names
from vk_provider.bursting.gate_state import Gate, GateState
from vk_provider.bursting.limits import GateLimits
from vk_provider.bursting.picture import Picture, Selection
from vk_provider.bursting.signals import Trust
from vk_provider.bursting.situation import (
    Rules,
    Situation,
    failed_quiet,
    is_failed_lately,
    situations,
)
from vk_provider.taints import Taint, Toleration

HELD = GateState(Gate.HOLD, ago(600))
PROVIDER = Taint(names.PROVIDER_TAINT, "vk-provider")
TOLERANT = (Toleration(names.PROVIDER_TAINT, "Exists"),)


def situation(
    picture: Picture, states: dict[str, GateState] | None = None, name: str = "burst"
) -> Situation:
    """That of one node."""
    return situations(picture, states or {"burst": HELD}, Trust(), Rules(), NOW)[name]


def test_pods_outside_are_counted_here_and_everywhere() -> None:
    """Those that still are to stay."""
    pods = [pod("a", "burst"), pod("b", "burst", evicted_at=ago(1)), pod("c", "other")]
    found = situation(Picture([home()], [virtual(), virtual("other")], pods))

    assert (found.outside, found.all_outside) == (1, 2)


def test_a_pod_waits_for_a_node_that_could_take_it() -> None:
    """It tolerates the node's own taint, fits its size and its labels."""
    node = virtual(taints=(PROVIDER, Taint(names.GATE_TAINT, "hold")), labels={"zone": "out"})
    waits = pod(unschedulable_since=ago(9), tolerations=TOLERANT)

    def waiting(**more: Any) -> int:
        one = replace(waits, **more)
        return len(situation(Picture([home()], [node], [one])).waiting)

    assert waiting() == 1
    assert waiting(node_selector={"zone": "out"}) == 1
    assert waiting(tolerations=()) == 0
    assert waiting(gpus=21) == 0
    assert waiting(node_selector={"zone": "home"}) == 0
    assert waiting(evicted_at=ago(1)) == 0
    assert waiting(unschedulable_since=None) == 0
    assert waiting(labels={}) == 0


def test_home_must_be_free_for_three_cold_starts() -> None:
    """Or for the configured time, whichever is longer."""
    slow = pod("a", "home-0", scheduled_at=ago(900), ready_since=ago(500))

    assert situation(Picture([home()], [virtual()], [slow])).quiet_for == 1200
    assert situation(Picture([home()], [virtual()])).quiet_for == 600


def test_the_way_home_is_looked_at_during_a_return_alone() -> None:
    """Otherwise new pods are just new pods."""
    picture = Picture([home()], [virtual()], [pod(created_at=ago(5))])
    returning = {"burst": GateState(Gate.RETURN, ago(60))}

    assert situation(picture).homecoming.in_flight == 0
    assert situation(picture, returning).homecoming.in_flight == 1


def test_an_open_gate_beside_is_told() -> None:
    """Through it an evicted pod would leave again; not through one that takes nobody."""
    states = {"burst": HELD, "other": GateState(Gate.OPEN, ago(60))}
    other = virtual("other")

    assert situation(Picture([], [virtual(), other]), states).others_open == "other"
    shut = replace(other, unavailable="capacity")
    assert situation(Picture([], [virtual(), shut]), states).others_open is None
    assert situation(Picture([], [virtual(), other]), states, "other").others_open is None


def test_one_node_at_a_time_has_its_turn() -> None:
    """The dearer one; and it must pay."""
    nodes = [virtual(usd_per_hour=1.0, running=1), virtual("dear", usd_per_hour=9.0, running=1)]
    picture = Picture([home()], nodes, [pod("a", "burst"), pod("b", "dear")])
    states = {"burst": HELD, "dear": HELD, "absent": HELD}

    assert not situation(picture, states).is_turn
    assert situation(picture, states, "dear").is_turn
    assert situation(picture, states).loss is None


def test_failures_in_a_row_double_the_quiet() -> None:
    """Up to eightfold."""
    limits = GateLimits(failed_quiet=100)
    failed = [replace(HELD, failed=(ago(150),) * count) for count in range(6)]

    assert [failed_quiet(one, limits).total_seconds() for one in failed] == [
        100, 100, 200, 400, 800, 800,
    ]  # fmt: skip
    assert [is_failed_lately(one, limits, NOW) for one in failed] == [False, False, *[True] * 4]


def test_a_person_may_override_to_open_or_hold() -> None:
    """Anything else is not understood, and nothing happens."""
    words = {
        word: situation(Picture([home()], [virtual(gate_override=word)])).override
        for word in ("open", "hold", "return", "ajar", None)
    }

    assert words == {
        "open": Gate.OPEN, "hold": Gate.HOLD, "return": None, "ajar": None, None: None,
    }  # fmt: skip


def test_a_selection_of_home_is_respected() -> None:
    """By label."""
    rules = Rules(Selection(home={"pool": "home"}))
    picture = Picture([home(), home("b", labels={"pool": "home"})], [virtual()])

    found = situations(picture, {"burst": HELD}, Trust(), rules, NOW)["burst"]

    assert found.supply.usable_nodes == 1
