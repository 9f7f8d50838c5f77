"""Readings of a container's status: right for the usual shapes, harmless for any other."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from vk_provider.pods import container_facts as facts


@pytest.mark.parametrize(
    ("status", "started"),
    [
        ({"state": {"running": {}}}, True),
        ({"state": {"terminated": {"exitCode": 0}}}, True),
        ({"state": {"waiting": {}}, "lastState": {"terminated": {}}}, True),
        ({"state": {"waiting": {}}, "restartCount": 1}, True),
        ({"state": {"waiting": {}}, "lastState": {}, "restartCount": 0}, False),
        ({"state": {"running": None}}, False),
        ({"state": "running", "lastState": [], "restartCount": "many"}, False),
        ({}, False),
    ],
)
def test_a_container_has_started_if_anything_says_so(status: dict[str, Any], started: bool) -> None:
    """A state, a last state or a count of restarts."""
    assert facts.has_started(status) is started


def test_states_and_roles() -> None:
    """Running now, done for good, a sidecar."""
    assert facts.is_running({"state": {"running": {}}})
    assert not facts.is_running({"state": {"waiting": {}}})
    assert facts.is_done({"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}})
    assert not facts.is_done({"state": {"terminated": {"exitCode": 1}}})
    assert not facts.is_done({})
    assert facts.is_sidecar({"restartPolicy": "Always"})
    assert not facts.is_sidecar({})


def test_times_are_utc_to_the_second() -> None:
    """Whatever zone they come in."""
    east = datetime(2024, 5, 1, 12, 0, 0, 999, tzinfo=timezone(timedelta(hours=2)))

    assert facts.timestamp(east) == "2024-05-01T10:00:00Z"
