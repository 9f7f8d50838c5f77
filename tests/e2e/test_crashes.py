"""Killed at random moments, the node pays for every pod once, forgets none, touches nobody else's.

The account's clock runs faster than ours, so that its list lag of 5 s costs a run no minutes;
what the node is told of the lag shrinks with it. ``python -m tests.e2e.crashes`` plays the same
with any number of kills, at any speed, with SIGTERM, and with larger troubles beside.
"""

from __future__ import annotations

import pytest

from tests.e2e.crash_stage import Plan
from tests.e2e.crashes import Outcome, run

KILLS = 50
SPEED = 5.0


@pytest.mark.timeout(900)
async def test_fifty_kills_cost_nobody_an_instance() -> None:
    """At least ten of them fall between a create's arrival and its answer."""
    outcome = await run(Plan(kills=KILLS, seed=1, speed=SPEED))

    assert len(outcome.kills) == KILLS, outcome
    assert outcome.in_the_window >= 10, outcome
    assert _costs(outcome) == (0, 0), outcome


@pytest.mark.timeout(600)
async def test_clean_stops_cost_nobody_an_instance() -> None:
    """A rollout sends SIGTERM, at no better moment than a crash."""
    outcome = await run(Plan(kills=8, seed=2, speed=SPEED, terminate=True))

    assert _costs(outcome) == (0, 0), outcome


@pytest.mark.timeout(600)
async def test_a_frozen_leader_and_an_outage_cost_nobody_an_instance() -> None:
    """The leader sleeps longer than its Lease while the API server or the account is away."""
    troubles = ("freeze", "api_server", "outage")
    outcome = await run(Plan(kills=6, seed=3, speed=SPEED, troubles=troubles, only_troubles=True))

    assert _costs(outcome) == (0, 0), outcome


def _costs(outcome: Outcome) -> tuple[int, int]:
    return outcome.double_billed, outcome.left_over
