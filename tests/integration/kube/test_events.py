"""Events over real sockets: what a person would see, and what they never hold up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.eventually import eventually, running
from tests.support.model_apiserver import ModelApiServer
from tests.support.objects import pod
from vk_provider.kube.client import KubeClient
from vk_provider.kube.event_aggregation import Limits
from vk_provider.kube.events import EventRecorder, NodeRef, Pace


@pytest.fixture
async def recorder(client: KubeClient) -> AsyncIterator[EventRecorder]:
    """A running recorder of the node ``burst``."""
    recorder = EventRecorder(client, "burst", pace=Pace(retry_seconds=0.01))
    async with running(recorder.run()):
        yield recorder


def stored(api: ModelApiServer) -> list[dict[str, Any]]:
    """The Events that the API server has."""
    return [obj for (resource, _, _), obj in api.store.objects.items() if resource == "events"]


async def test_an_event_looks_like_a_kubelets(api: ModelApiServer, recorder: EventRecorder) -> None:
    """Every field that kubectl describe and a search by field need."""
    recorder.emit(pod("a"), "Warning", "BackOff", "no", "spec.containers{main}")
    await recorder.drain()

    [event] = stored(api)
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "a",
        "uid": "uid-a",
        "fieldPath": "spec.containers{main}",
    }
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "BackOff", "no")
    assert event["source"] == {"component": "vk-provider", "host": "burst"}
    assert event["metadata"]["name"].startswith("a.")
    assert event["firstTimestamp"] == event["lastTimestamp"]
    assert event["count"] == 1


async def test_a_nodes_events_live_in_default(api: ModelApiServer, recorder: EventRecorder) -> None:
    """A node has no namespace; this is where kubectl looks."""
    recorder.emit(NodeRef("burst", "uid-n"), "Normal", "Starting", "here")
    await recorder.drain()

    [event] = stored(api)
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["involvedObject"]


async def test_the_same_event_again_is_a_patch(
    api: ModelApiServer, recorder: EventRecorder
) -> None:
    """One object with a count."""
    for _ in range(2):
        recorder.emit(pod("a"), "Normal", "Pulling", "x")
        await recorder.drain()

    [event] = stored(api)
    assert event["count"] == 2
    assert [call.verb for call in api.requests] == ["POST", "PATCH"]


async def test_what_is_counted_while_it_waits_is_written_once(
    api: ModelApiServer, client: KubeClient
) -> None:
    """A hot loop of ours costs one call, not a hundred."""
    recorder = EventRecorder(client, "burst", limits=Limits(burst=1000))
    for _ in range(100):
        recorder.emit(pod("a"), "Normal", "Pulling", "x")

    async with running(recorder.run()):
        await recorder.drain()

    [event] = stored(api)
    assert event["count"] == 100
    assert len(api.requests) == 1


async def test_an_event_that_was_forgotten_is_created_again(
    api: ModelApiServer, recorder: EventRecorder
) -> None:
    """The API server keeps Events for an hour."""
    recorder.emit(pod("a"), "Normal", "Pulling", "x")
    await recorder.drain()
    api.store.objects.clear()

    recorder.emit(pod("a"), "Normal", "Pulling", "x")
    await recorder.drain()

    assert [event["count"] for event in stored(api)] == [2]


async def test_a_create_whose_answer_was_lost_makes_no_second_event(
    api: ModelApiServer, recorder: EventRecorder
) -> None:
    """The name is fixed before the first try."""
    api.lie(0, verb="POST", after_commit=True)

    recorder.emit(pod("a"), "Normal", "Pulling", "x")
    await recorder.drain()

    assert len(stored(api)) == 1
    assert recorder.dropped == 0


async def test_a_refused_event_is_counted_and_forgotten(
    api: ModelApiServer, recorder: EventRecorder
) -> None:
    """A namespace that is being deleted takes no Events; the next one is written."""
    api.lie(403)

    recorder.emit(pod("a"), "Normal", "Pulling", "x")
    recorder.emit(pod("b"), "Normal", "Pulling", "x")
    await recorder.drain()

    assert recorder.dropped == 1
    assert len(stored(api)) == 1


async def test_an_outage_costs_the_oldest(client: KubeClient) -> None:
    """The queue is bounded, and emit never waits."""
    recorder = EventRecorder(client, "burst", pace=Pace(most_waiting=10))

    for number in range(15):
        recorder.emit(pod(f"p{number}"), "Normal", "Pulling", "x")
    await recorder.drain(seconds=0.01)

    assert recorder.dropped == 5 + 10


async def test_an_api_server_that_stays_away_costs_one_event(
    api: ModelApiServer, recorder: EventRecorder
) -> None:
    """After a few tries it is dropped, so that the queue moves on."""
    api.lie(500, verb="POST", times=3)

    recorder.emit(pod("a"), "Normal", "Pulling", "x")
    recorder.emit(pod("b"), "Normal", "Pulling", "x")
    await recorder.drain()

    assert recorder.dropped == 1
    assert len(stored(api)) == 1


async def test_all_objects_share_a_rate(api: ModelApiServer, client: KubeClient) -> None:
    """A thousand pods with one Event each do not crowd out their own status."""
    recorder = EventRecorder(client, "burst", pace=Pace(per_second=20, burst=1))
    for number in range(5):
        recorder.emit(pod(f"p{number}"), "Normal", "Pulling", "x")

    async with running(recorder.run()):
        await recorder.drain()

    times = [call.at for call in api.requests]
    assert times[-1] - times[0] >= 4 / 20 - 0.01


async def test_one_object_is_cut_off(api: ModelApiServer, client: KubeClient) -> None:
    """It has said enough; what was held back is counted."""
    recorder = EventRecorder(client, "burst", limits=Limits(burst=2))
    for number in range(5):
        recorder.emit(pod("a"), "Normal", f"R{number}", "m" * 5000)

    async with running(recorder.run()):
        await recorder.drain()

    assert recorder.suppressed == 3
    assert all(len(event["message"]) == 1024 for event in stored(api))
    await eventually(lambda: len(stored(api)) == 2)
