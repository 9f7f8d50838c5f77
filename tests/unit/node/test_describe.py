"""What `kubectl describe node` tells a person."""

from datetime import UTC, datetime

import pytest

from vk_provider.node.describe import (
    BackendView,
    backend_line,
    door_line,
    provider_ready,
    render_annotations,
    stale_annotations,
)

GOOD = BackendView(
    "secure", "runpod", capabilities=("offers", "logs"), instances=3, usd_per_hour=5.97
)
BAD = BackendView("other", "modal", "denied: card\nexpired", is_ready=False, instances=1)
UNTIL = datetime(2024, 5, 1, 10, 0, 30, tzinfo=UTC)


def test_a_backend_shows_its_health_instances_and_price() -> None:
    """On one line; without prices none is shown."""
    assert backend_line(GOOD) == "runpod: ok; 3 instances, 5.97 USD/h; offers, logs"
    assert backend_line(BAD) == "modal: denied: card expired; 1 instance; no optional capabilities"


@pytest.mark.parametrize(
    ("closed", "line"),
    [
        ((None, "", None), "open"),
        ((None, "reopening", None), "open: reopening"),
        (("outage", "", None), "closed: outage"),
        (("capacity", "no L40S", UNTIL), "closed: capacity until 2024-05-01T10:00:30Z: no L40S"),
    ],
)
def test_the_door_tells_why_and_until_when(
    closed: tuple[str | None, str, datetime | None], line: str
) -> None:
    """An open one may be reopening."""
    assert door_line(closed) == line


def test_annotations_name_every_backend_and_the_totals() -> None:
    """A total of prices only where there are any."""
    notes = render_annotations((GOOD, BAD), (None, "", None))

    assert notes["vk-provider.dev/backend-secure"] == backend_line(GOOD)
    assert notes["vk-provider.dev/backend-other"] == backend_line(BAD)
    assert notes["vk-provider.dev/running-instances"] == "4"
    assert notes["vk-provider.dev/usd-per-hour"] == "5.97"
    assert notes["vk-provider.dev/door"] == "open"
    assert render_annotations((BAD,), (None, "", None))["vk-provider.dev/usd-per-hour"] is None


def test_backends_that_left_the_configuration_are_stale() -> None:
    """Other annotations are not."""
    current = {
        "vk-provider.dev/backend-secure": "",
        "vk-provider.dev/backend-gone": "",
        "vk-provider.dev/door": "",
    }

    assert stale_annotations(current, (GOOD,)) == ["vk-provider.dev/backend-gone"]


@pytest.mark.parametrize(
    ("backends", "status", "reason", "message"),
    [
        ((GOOD,), "True", "BackendsReady", "secure: ok"),
        ((GOOD, BAD), "True", "SomeBackendsNotReady", "secure: ok; other: denied: card expired"),
        ((BAD,), "False", "NoBackendReady", "other: denied: card expired"),
        ((), "False", "NoBackendReady", "no backend is configured"),
    ],
)
def test_provider_ready_is_false_only_if_no_backend_works(
    backends: tuple[BackendView, ...], status: str, reason: str, message: str
) -> None:
    """Its message names each backend."""
    assert provider_ready(backends) == (status, reason, message)


def test_endless_prose_is_cut() -> None:
    """Backends answer whole pages."""
    line = backend_line(BackendView("b", "runpod", health="x" * 5000))

    assert len(line) < 600
    assert "..." in line
