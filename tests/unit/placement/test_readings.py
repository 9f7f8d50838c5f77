"""An observed instance as a reading of its meter."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from vk_provider.placement.readings import Billing, reading_of
from vk_provider.pods.types import (
    ContainerObservation,
    ContainerState,
    InstancePhase,
    InstanceRef,
    Observation,
    PodUID,
    Running,
    Stamp,
    Terminated,
    Waiting,
)

MADE = datetime(2026, 1, 1, tzinfo=UTC)
LATER = MADE + timedelta(minutes=5)
NOW = MADE + timedelta(hours=1)


def seen(phase: InstancePhase, *states: ContainerState, price: float | None = 2.0) -> Observation:
    """An instance in a list."""
    return Observation(
        Stamp("c", "n", "team", "web", PodUID("uid")),
        InstanceRef("i"),
        phase,
        tuple(ContainerObservation(f"c{at}", state) for at, state in enumerate(states)),
        created_at=MADE,
        usd_per_hour=price,
    )


def test_it_is_billed_from_its_creation() -> None:
    """Under its namespace, at the price that the backend shows."""
    found = reading_of("b", seen(InstancePhase.RUNNING, Running(LATER)), Billing(), NOW)
    assert (found.key, found.namespace, found.pod_uid) == (("b", "i"), "team", "uid")
    assert (found.usd_per_hour, found.since, found.until) == (2.0, MADE, None)
    assert found.is_billed


def test_where_starting_is_free_it_is_billed_from_its_start() -> None:
    """The first container's; where nobody tells, from its creation."""
    billing = Billing(starting_is_free=True)
    early = reading_of("b", seen(InstancePhase.STARTING, Waiting()), billing, NOW)
    assert not early.is_billed
    states = (Running(NOW), Terminated(0, started_at=LATER), Running())
    running = seen(InstancePhase.RUNNING, *states)
    assert reading_of("b", running, billing, NOW).since == LATER
    assert reading_of("b", seen(InstancePhase.RUNNING), billing, NOW).since == MADE


def test_an_ended_one_is_billed_until_its_end_where_that_is_free() -> None:
    """The last container's; where nobody tells, until now."""
    ended = seen(InstancePhase.ENDED, Terminated(0, finished_at=LATER), Terminated(0), Running())
    free = Billing(ended_is_free=True)
    assert reading_of("b", ended, free, NOW).until == LATER
    assert reading_of("b", ended, Billing(), NOW).until is None
    assert reading_of("b", replace(ended, usd_per_hour=None), Billing(), NOW).until == LATER
    assert reading_of("b", seen(InstancePhase.ENDED), free, NOW).until == NOW


def test_a_backend_without_prices_is_reckoned_at_what_is_configured() -> None:
    """Not after its end; and not where nothing is configured."""
    running, ended = (
        seen(phase, price=None) for phase in (InstancePhase.RUNNING, InstancePhase.ENDED)
    )
    billing = Billing(unpriced_usd_per_hour=0.5)
    assert reading_of("b", running, billing, NOW).usd_per_hour == 0.5
    assert reading_of("b", ended, billing, NOW).usd_per_hour is None
    assert reading_of("b", running, Billing(), NOW).usd_per_hour is None
