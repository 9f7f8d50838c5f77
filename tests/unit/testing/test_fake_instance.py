"""Ends that an instance's own plan foresees."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from vk_provider.pods.types import IMPLICIT_OFFER, EndCause, InstanceRef
from vk_provider.testing.builders import make_stamp
from vk_provider.testing.fake_instance import FakeInstance, Plan


def instance(plan: Plan) -> FakeInstance:
    """An instance made at moment 0."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return FakeInstance(
        InstanceRef("fake-1"),
        make_stamp(),
        plan,
        IMPLICIT_OFFER,
        created_at=0.0,
        wall_time=lambda at: start + timedelta(seconds=at),
    )


def test_a_planned_end_of_the_machine_has_a_cause_and_no_exit_code() -> None:
    """Nobody saw how its containers ended."""
    seen = instance(Plan(run_seconds=1.0, ended_by=EndCause.LOST)).observe(2.0, make_stamp())

    assert seen.ended_by is EndCause.LOST
    assert "annotation" in (seen.message or "")


def test_an_instance_that_vanished_is_neither_shown_nor_billed() -> None:
    """It goes without a word."""
    gone = instance(Plan(vanish_after_seconds=3.0))

    assert (gone.is_shown(2.9), gone.is_shown(3.0)) == (True, False)
    assert (gone.is_billed(2.9), gone.is_billed(3.0)) == (True, False)
    assert gone.billed_until(9.0, ended_is_free=True) == 3.0
