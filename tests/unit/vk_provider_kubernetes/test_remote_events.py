"""What happens over there is told once per occurrence."""

from __future__ import annotations

from typing import Any

import pytest
from vk_provider_kubernetes.remote_events import RemoteEvents, read

from vk_provider.kube.watch import Removed, Resumed, Synced, Upsert
from vk_provider.pods.types import InstanceRef
from vk_provider.provider import InstanceEvent


def event(uid: str = "e-1", **fields: Any) -> dict[str, Any]:
    """A kubelet's Event about a container of a pod."""
    about = {
        "kind": "Pod",
        "namespace": "vk-burst",
        "name": "web-1",
        "uid": "u-1",
        "fieldPath": "spec.containers{web}",
    }
    return {
        "metadata": {"uid": uid},
        "involvedObject": about,
        "type": "Warning",
        "reason": "Unhealthy",
        "message": "Liveness probe failed",
        "count": 1,
        "lastTimestamp": "2026-01-01T00:00:00Z",
        **fields,
    }


def listening() -> RemoteEvents:
    """One that has seen everything that was there: nothing."""
    events = RemoteEvents()
    assert events.news(Synced(frozenset())) is None
    return events


def test_an_event_keeps_its_words() -> None:
    """And the instance and the container that it is about."""
    assert read(event()) == InstanceEvent(
        InstanceRef("vk-burst/web-1/u-1"),
        "Warning",
        "Unhealthy",
        "Liveness probe failed",
        "spec.containers{web}",
    )


def test_the_instances_own_name_is_left_out() -> None:
    """At home nobody knows it."""
    message = "Back-off restarting failed container web in pod web-1_vk-burst(u-1)"

    found = read(event(message=message))

    assert found is not None
    assert found.message == "Back-off restarting failed container web"


@pytest.mark.parametrize(
    "fields",
    [
        {"involvedObject": {"kind": "Pod", "name": "web-1"}},
        {"type": "Normal", "reason": "Scheduled"},
    ],
)
def test_what_is_nobodys_or_said_at_home_as_well_is_left_out(fields: dict[str, Any]) -> None:
    """A pod is scheduled at home, whatever its instance is."""
    assert read(event(**fields)) is None


def test_an_unknown_type_is_normal() -> None:
    """The API knows two."""
    found = read(event(type="Odd"))

    assert found is not None
    assert found.type == "Normal"


def test_what_was_there_before_is_no_news() -> None:
    """But its next occurrence is."""
    events = RemoteEvents()

    assert events.news(Upsert(event())) is None
    assert events.news(Synced(frozenset({"e-1"}))) is None
    assert events.news(Upsert(event())) is None
    assert events.news(Upsert(event(count=2))) is not None


def test_each_occurrence_is_told_once() -> None:
    """A version that counts nothing new says nothing; one that is forgotten may come again."""
    events = listening()

    assert events.news(Upsert(event())) is not None
    assert events.news(Upsert(event())) is None
    assert events.news(Resumed()) is None
    assert events.news(Removed(event())) is None
    assert events.news(Upsert(event())) is not None


def test_a_series_counts_as_well() -> None:
    """The newer kind of Event."""
    events = listening()
    series = {"count": 3, "lastObservedTime": "2026-01-01T00:00:03Z"}
    new: dict[str, Any] = {
        "count": None,
        "lastTimestamp": None,
        "eventTime": "2026-01-01T00:00:00Z",
    }

    assert events.news(Upsert(event(**new))) is not None
    assert events.news(Upsert(event(**new, series=series))) is not None
    assert events.news(Upsert(event(**new, series=series))) is None
