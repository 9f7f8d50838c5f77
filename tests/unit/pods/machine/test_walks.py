"""Long walks through the same world: more of an ordinary day than hypothesis cares to try.

Hypothesis finds the odd corner and shrinks it; a walk gets further, since most of its steps let
things go on. The seeds are fixed, so a walk that fails fails always.
"""

from __future__ import annotations

import random

import pytest

from tests.unit.pods.machine.test_machine import Lifecycle
from vk_provider.pods.types import EndCause

KINDS = ("good", "good", "good", "good", "unsupported", "incomplete")
POLICIES = ("Always", "OnFailure", "Never")
OWNERS = ("StatefulSet", "StatefulSet", "Job", None)
OUTCOMES = ("well", "well", "well", "well", "unheard", "unknown", "full", "denied", "rejected")
STEPS = 60


def step(world: Lifecycle, dice: random.Random) -> None:
    """One thing that happens, the likelier ones more often."""
    index, outcome = dice.randrange(6), dice.choice(OUTCOMES)
    what = dice.choices(
        ("go on", "task", "list", "old list", "backend", "time", "somebody", "again", "restart"),
        (20, 14, 16, 4, 10, 8, 6, 3, 2),
    )[0]
    if what == "go on":
        world.goes_on(dice.randint(1, 4), outcome)
    elif what == "task":
        hold = dice.random() < 0.4
        world.a_task_ends(dice.randrange(3), index, outcome, index, hold)
    elif what == "list":
        late, slip = dice.random() < 0.6, dice.choice((None, None, 0, 1))
        world.list_is_taken(dice.choice("aab"), dice.random() < 0.9, late, slip)
    elif what == "backend":
        act(world, dice, index)
    else:
        disturb(world, dice, what)


def act(world: Lifecycle, dice: random.Random, index: int) -> None:
    """An instance runs, ends or vanishes."""
    what = dice.choice(("runs", "runs", "runs", "ends", "vanishes", "left over"))
    cause = dice.choice((None, None, EndCause.PREEMPTED, EndCause.IMAGE))
    world.backend_acts(what, index, dice.choice((0, 1, None)), cause)


def disturb(world: Lifecycle, dice: random.Random, what: str) -> None:
    """What people, time and the network add."""
    index = dice.randrange(6)
    if what == "time":
        world.time_passes(dice.choice((1, 6, 20, 60, 400)))
    elif what == "somebody":
        deed = dice.choice(("create", "create", "edit", "delete"))
        world.somebody_acts(deed, index, dice.choice((30, 30, 2, 0)), new_pod(dice))
    elif what == "again":
        world.is_told_again(dice.random() < 0.5, index)
    elif what == "restart":
        world.restart(index, dice.choice(OUTCOMES))
    else:
        world.old_list_arrives(index)


def new_pod(dice: random.Random) -> tuple[str, str, str | None]:
    """Kind, restart policy and owner."""
    return dice.choice(KINDS), dice.choice(POLICIES), dice.choice(OWNERS)


@pytest.mark.parametrize("seed", range(40))
def test_a_long_walk_ends_with_nothing_left(seed: int) -> None:
    """After each step at most one instance per pod; in the end none that nobody wants."""
    world, dice = Lifecycle(), random.Random(seed)
    world.begin(dice.random() < 0.5, [new_pod(dice), new_pod(dice)], dice.randrange(8), "well")

    for _ in range(STEPS):
        step(world, dice)
        world.one_live_instance_per_pod()
    world.teardown()
