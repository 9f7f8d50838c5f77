"""The gate over hours of virtual time: out when training comes, home when it goes."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.bursting.gate_world import HOME, OUTSIDE, World
from vk_provider.bursting.limits import GateLimits
from vk_provider.bursting.signals import Kueue, PrometheusSignal
from vk_provider.bursting.situation import Rules

HOURS = 3600
ROOM = PrometheusSignal(age=5, home_nodes=2, slots={1: 16})


def out(**more: Any) -> tuple[World, list[str]]:
    """A world in which training has pushed everybody out, and the training pods."""
    world = World(Rules(), **more)
    world.run(10)
    jobs = [world.train(), world.train()]
    world.run(60)
    assert world.on(OUTSIDE) == 16
    return world, jobs


def reasons(world: World) -> list[str]:
    """Why the gate moved, in order."""
    return [reason for _, _, reason in world.moves]


def home_again(world: World, jobs: list[str], seconds: int = HOURS, tick: int = 5) -> None:
    """Training ends and time passes."""
    for job in jobs:
        world.end(job)
    world.run(seconds, tick)


def test_a_preempted_pod_is_outside_within_seconds() -> None:
    """Five to decide; termination and the scheduler's turn come on top."""
    world, _ = out()

    assert reasons(world) == ["PodsWaiting"]
    assert world.longest_wait <= 6


def test_all_come_home_two_at_a_time() -> None:
    """Close after three minutes, return after ten, hold when all are home."""
    world, jobs = out()
    home_again(world, jobs)

    assert world.on(*HOME) == 16
    assert reasons(world)[1:4] == ["SpareAtHome", "HomeIsFree", "AllHome"]
    assert world.most_in_flight == 2
    returned = world.moves[2][0] - world.moves[1][0]
    assert returned.total_seconds() >= 7 * 60


def test_training_in_the_middle_of_a_return_opens_at_once() -> None:
    """Only the gate can react: the descheduler just stops."""
    world, jobs = out()
    home_again(world, jobs, 15 * 60)
    assert world.state.value == "return"
    world.longest_wait = 0
    world.train()
    world.train()
    world.run(120)

    assert world.state.value == "open"
    assert world.longest_wait <= 8
    assert world.on(OUTSIDE) == 16


@pytest.mark.parametrize(
    "doubt",
    [
        {"prometheus": replace(ROOM, age=150)},
        {"prometheus": replace(ROOM, is_empty=True)},
        {"prometheus": replace(ROOM, home_nodes=1)},
        {"prometheus": replace(ROOM, slots={1: 0}, training_waiting=8)},
        {"kueue": Kueue.MISSING},
        {"unavailable": "outage"},
    ],
    ids=["stale", "empty", "shrunken", "contrary", "no-kueue", "provider-away"],
)
def test_a_doubt_during_a_return_stops_it_at_once(doubt: dict[str, object]) -> None:
    """Not one more eviction while it lasts."""
    world, jobs = out(prometheus=ROOM)
    home_again(world, jobs, 16 * 60)
    assert 0 < world.on(OUTSIDE) < 16
    for name, value in doubt.items():
        setattr(world, name, value)
    world.step()
    assert world.state.taint == "hold"
    world.run(30)
    outside = world.on(OUTSIDE)
    world.run(300, tick=5)

    assert (world.state.value, world.on(OUTSIDE)) == ("hold", outside)


def test_a_late_replacement_ends_a_return_for_half_an_hour() -> None:
    """Something at home does not work: whoever is outside stays there."""
    world, jobs = out()
    world.cold_start = 2000
    home_again(world, jobs, HOURS)

    assert "HomecomingLate" in reasons(world)
    assert world.most_in_flight == 2
    late = next(at for at, _, reason in world.moves if reason == "HomecomingLate")
    after = [(at, to) for at, to, _ in world.moves if at > late and to == "return"]
    assert all((at - late).total_seconds() >= 1800 for at, _ in after)


def test_training_that_comes_and_goes_does_not_flap_the_gate() -> None:
    """Six moves an hour at most, and inference is served throughout."""
    world, jobs = out()
    for _ in range(4):
        home_again(world, jobs, 900)
        jobs = [world.train(), world.train()]
        world.run(300, tick=2)
        assert world.on(OUTSIDE) + world.on(*HOME) == 16

    assert most_within_an_hour(world) <= 6


def test_a_new_leader_in_every_state_changes_nothing() -> None:
    """The annotation is all it needs."""
    steady, restarted = out(), out()
    for world, jobs in (steady, restarted):
        for job in jobs:
            world.end(job)
    for _ in range(40):
        for world, _ in (steady, restarted):
            world.run(60, tick=5)
        restarted[0].restart()

    assert steady[0].moves == restarted[0].moves
    assert len(steady[0].moves) >= 4


def test_a_single_slot_is_no_reason_to_close() -> None:
    """And an open gate with a full home stays open."""
    world, jobs = out()
    world.end(jobs[0])
    world.pods["squatter"] = replace(world.pods[jobs[1]], uid="squatter", gpus=7, node=HOME[0])
    world.run(HOURS, tick=5)

    assert reasons(world) == ["PodsWaiting"]


def test_thresholds_are_those_of_the_rules() -> None:
    """A bench wants its story in a minute."""
    quick = GateLimits(
        open_after=1, close_after=1, stable_for=2, cold_start_factor=0, dwell=1, max_transitions=20
    )
    world = World(Rules(gate=quick), cold_start=2, stop=1, cycle=5)
    world.run(5)
    jobs = [world.train(), world.train()]
    world.run(20)
    home_again(world, jobs, 70, tick=1)

    assert world.on(*HOME) == 16
    assert reasons(world)[:4] == ["PodsWaiting", "SpareAtHome", "HomeIsFree", "AllHome"]


CHANGES: dict[str, dict[str, object]] = {
    "stale": {"prometheus": replace(ROOM, age=150)},
    "fresh": {"prometheus": ROOM},
    "away": {"unavailable": "outage"},
    "back": {"unavailable": None},
    "slow": {"cold_start": 1200},
}


@settings(max_examples=8)
@given(
    st.lists(st.sampled_from(["train", "end", "restart", *CHANGES]), min_size=4, max_size=10),
    st.integers(1, 90),
)
def test_whatever_happens_few_move_at_once_and_the_gate_moves_seldom(
    happenings: list[str], cold_start: int
) -> None:
    """Two on their way, six moves an hour."""
    world = World(Rules(), cold_start=cold_start, prometheus=ROOM)
    jobs: list[str] = []
    for happening in happenings:
        if happening == "train" and len(jobs) < 2:
            jobs.append(world.train())
        elif happening == "end" and jobs:
            world.end(jobs.pop())
        elif happening == "restart":
            world.restart()
        for name, value in CHANGES.get(happening, {}).items():
            setattr(world, name, value)
        world.run(300, tick=5)

    assert world.most_in_flight <= 2
    assert most_within_an_hour(world) <= 6


def most_within_an_hour(world: World) -> int:
    """How often the gate moved in its busiest hour."""
    moments = [at for at, _, _ in world.moves]
    return max(
        (
            sum((at - first).total_seconds() < HOURS for at in moments[index:])
            for index, first in enumerate(moments)
        ),
        default=0,
    )
