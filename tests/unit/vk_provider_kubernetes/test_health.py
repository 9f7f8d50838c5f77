"""The other API's health as a state machine."""

from __future__ import annotations

from vk_provider_kubernetes.health import Health, Pulse


def test_a_first_failure_makes_it_suspect() -> None:
    """And a good answer forgives it."""
    suspect = Pulse().failed("refused", 100.0, lost_after=60.0)

    assert suspect.health is Health.SUSPECT
    assert suspect.answered().health is Health.HEALTHY


def test_it_is_lost_after_a_while_that_counts_from_the_first_failure() -> None:
    """Whatever the kinds of failure."""
    pulse = Pulse().failed("refused", 100.0, 60.0).failed("TLS", 159.0, 60.0)
    assert pulse.health is Health.SUSPECT

    pulse = pulse.failed("unauthorized", 160.0, 60.0)

    assert (pulse.health, pulse.failing_since) == (Health.LOST, 100.0)
    assert pulse.told(165.0) == "the other cluster is Lost for 65 s: unauthorized"


def test_what_was_lost_recovers_and_then_is_healthy() -> None:
    """Two good answers; people read the first."""
    lost = Pulse().failed("x", 0.0, 0.0)

    recovered = lost.answered()

    assert recovered == Pulse(Health.RECOVERED)
    assert recovered.told(9.0) == "the other cluster is Recovered"
    assert recovered.answered() == Pulse()


def test_a_recovery_that_fails_again_starts_to_count_anew() -> None:
    """It was well in between."""
    again = Pulse().failed("x", 0.0, 0.0).answered().failed("y", 50.0, 60.0)

    assert (again.health, again.failing_since) == (Health.SUSPECT, 50.0)
