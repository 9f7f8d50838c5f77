"""The watch over real sockets: every way in which an API server ends, breaks or stalls one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import partial

import pytest

from tests.support.eventually import eventually, running
from tests.support.model_apiserver import ModelApiServer
from tests.support.objects import pod
from vk_provider.faults import ForbiddenError, KubeUnavailableError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.watch import (
    Interrupted,
    Removed,
    Resumed,
    Synced,
    Upsert,
    WatchEvent,
    WatchTimings,
    watch,
)

QUICK = WatchTimings(first_delay_seconds=0.01, longest_delay_seconds=0.05)


@asynccontextmanager
async def following(
    client: KubeClient, timings: WatchTimings = QUICK, selector: str | None = None
) -> AsyncIterator[list[WatchEvent]]:
    """The events of a watch on all pods, as they come."""
    seen: list[WatchEvent] = []

    async def read() -> None:
        changes = watch(client, paths.pods(), field_selector=selector, timings=timings)
        async with aclosing(changes) as events:
            async for event in events:
                take(event)

    take = seen.append
    async with running(read()):
        yield seen


def names(seen: list[WatchEvent], kind: type[Upsert] | type[Removed] = Upsert) -> list[str]:
    """The pods' names in events of a kind."""
    return [event.obj["metadata"]["name"] for event in seen if isinstance(event, kind)]


def synced(seen: list[WatchEvent]) -> int:
    """How many complete views came."""
    return sum(isinstance(event, Synced) for event in seen)


def calls(api: ModelApiServer, **query: str) -> int:
    """How many requests had these parameters."""
    return sum(
        all(call.query.get(key) == value for key, value in query.items()) for call in api.requests
    )


@pytest.mark.parametrize("served", [True, False])
async def test_a_watch_begins_with_a_complete_view(
    api: ModelApiServer, client: KubeClient, served: bool
) -> None:
    """WatchList where it is served, a list where it is refused: the same events."""
    api.watch_list_served = served
    for name in ("a", "b"):
        api.store.put("pods", pod(name))

    async with following(client) as seen:
        await eventually(lambda: synced(seen))
        api.store.put("pods", pod("c"))
        await eventually(lambda: names(seen) == ["a", "b", "c"])

    assert seen[2] == Synced(frozenset({"uid-a", "uid-b"}))


async def test_a_refused_watch_list_is_not_asked_for_again(
    api: ModelApiServer, client: KubeClient
) -> None:
    """The refusal is remembered for all watches of the client."""
    api.watch_list_served = False

    for _ in range(2):
        async with following(client) as seen:
            await eventually(partial(synced, seen))

    assert calls(api, sendInitialEvents="true") == 1


async def test_a_server_that_ignores_watch_list_is_listed(
    api: ModelApiServer, client: KubeClient
) -> None:
    """Initial events that never end make way for a list."""
    api.store.put("pods", pod("a"))
    api.stalled = True
    timings = WatchTimings(0.01, 0.05, initial_silence_seconds=0.05)

    async with following(client, timings) as seen:
        await eventually(lambda: synced(seen))

    assert names(seen) == ["a"]


async def test_a_watch_list_that_is_cut_short_begins_anew(
    api: ModelApiServer, client: KubeClient
) -> None:
    """Half of a view says nothing of what is not there, so nothing is resumed from it."""
    for name in ("a", "b"):
        api.store.put("pods", pod(name))
    api.cut_after = 1

    async with following(client) as seen:
        await eventually(lambda: synced(seen))

    assert seen[-1] == Synced(frozenset({"uid-a", "uid-b"}))
    assert calls(api, sendInitialEvents="true") == 2


async def test_a_list_of_many_pages_is_complete(api: ModelApiServer, client: KubeClient) -> None:
    """1,200 pods come in three pages, with the kind that a list leaves out."""
    api.watch_list_served = False
    for number in range(1200):
        api.store.put("pods", pod(f"p{number}"))

    async with following(client) as seen:
        await eventually(lambda: synced(seen))

    assert len(set(names(seen))) == 1200
    assert calls(api, limit="500") == 3
    assert isinstance(seen[0], Upsert)
    assert seen[0].obj["kind"] == "Pod"


async def test_a_clean_end_resumes_from_the_last_version(
    api: ModelApiServer, client: KubeClient
) -> None:
    """What changed between two watches is neither lost nor listed again."""
    api.store.put("pods", pod("a"))

    async with following(client) as seen:
        await eventually(lambda: synced(seen))
        api.store.put("pods", pod("b"))
        await eventually(lambda: names(seen) == ["a", "b"])
        version = str(api.store.version)
        api.drop_watches()
        api.store.put("pods", pod("c"))
        api.store.remove("pods", "default", "a")
        await eventually(lambda: names(seen, Removed) == ["a"])

    assert names(seen) == ["a", "b", "c"]
    assert synced(seen) == 1
    assert calls(api, resourceVersion=version) == 1


async def test_a_bookmark_moves_the_version_on(api: ModelApiServer, client: KubeClient) -> None:
    """A quiet watch resumes from the last bookmark, which is never too old."""
    async with following(client) as seen:
        await eventually(lambda: synced(seen))
        api.store.put("nodes", {"metadata": {"name": "unrelated"}})
        version = str(api.store.version)
        api.send_to_watches("BOOKMARK")
        api.drop_watches()
        await eventually(lambda: calls(api, resourceVersion=version))


@pytest.mark.parametrize("as_event", [True, False])
@pytest.mark.parametrize("served", [True, False])
async def test_an_expired_version_leads_to_a_relist(
    api: ModelApiServer, client: KubeClient, as_event: bool, served: bool
) -> None:
    """410, as a status or as an ERROR event: a fresh view, without the pod deleted meanwhile."""
    api.expire_as_event = as_event
    api.watch_list_served = served
    api.store.put("pods", pod("a"))
    api.store.put("pods", pod("b"))

    async with following(client) as seen:
        await eventually(lambda: synced(seen))
        await api.refuse()
        api.store.remove("pods", "default", "a")
        api.store.expire()
        await api.serve()
        await eventually(lambda: synced(seen) == 2)

    assert [event for event in seen if isinstance(event, Synced)][-1] == Synced(
        frozenset({"uid-b"})
    )
    assert calls(api, watch="true") <= 6


async def test_another_error_event_resumes(api: ModelApiServer, client: KubeClient) -> None:
    """An ERROR event that is not 410 interrupts; the watch goes on where it was."""
    async with following(client) as seen:
        await eventually(lambda: synced(seen))
        api.send_to_watches("ERROR", {"kind": "Status", "code": 500, "message": "etcd is away"})
        await eventually(lambda: Resumed() in seen)
        api.store.put("pods", pod("a"))
        await eventually(lambda: names(seen) == ["a"])

    [interruption] = [event for event in seen if isinstance(event, Interrupted)]
    assert isinstance(interruption.fault, KubeUnavailableError)
    assert "etcd is away" in str(interruption.fault)
    assert synced(seen) == 1


async def test_a_silent_watch_is_noticed(api: ModelApiServer, client: KubeClient) -> None:
    """Once bookmarks flow, their absence is a stall; what was swallowed comes with the next."""
    timings = WatchTimings(0.01, 0.05, stall_seconds=0.3)

    async with following(client, timings) as seen:
        await eventually(lambda: synced(seen))
        api.stalled = True
        api.store.put("pods", pod("a"))
        await eventually(lambda: any(isinstance(event, Interrupted) for event in seen))
        api.stalled = False
        await eventually(lambda: names(seen) == ["a"])


async def test_silence_longer_than_the_servers_own_limit_is_a_stall(
    api: ModelApiServer, client: KubeClient
) -> None:
    """Without bookmarks the limit is the asked-for time-out and a margin."""
    api.watch_list_served = False
    timings = WatchTimings(
        0.01,
        0.05,
        shortest_request_seconds=0.1,
        longest_request_seconds=0.1,
        margin_seconds=0.1,
    )

    async with following(client, timings) as seen:
        await eventually(lambda: any(isinstance(event, Interrupted) for event in seen))

    [fault] = [event.fault for event in seen if isinstance(event, Interrupted)][:1]
    assert fault.reason == "Stalled"


async def test_bytes_may_be_split_anywhere(api: ModelApiServer, client: KubeClient) -> None:
    """Every character arrives whole, though each byte came alone."""
    api.piece_bytes = 1
    annotations = {"vk-provider.dev/märchen": "日本語 🚀"}

    async with following(client) as seen:
        await eventually(lambda: synced(seen))
        api.store.put("pods", pod("a", annotations=annotations))
        await eventually(lambda: names(seen) == ["a"])

    [event] = [event for event in seen if isinstance(event, Upsert)]
    assert event.obj["metadata"]["annotations"] == annotations


async def test_a_line_has_no_length_limit(api: ModelApiServer, client: KubeClient) -> None:
    """An object of several MiB passes."""
    async with following(client) as seen:
        await eventually(lambda: synced(seen))
        api.store.put("pods", pod("a", annotations={"large": "x" * (4 << 20)}))
        await eventually(lambda: names(seen) == ["a"])


async def test_garbage_interrupts_and_is_passed_over(
    api: ModelApiServer, client: KubeClient
) -> None:
    """A line that is no watch event raises nothing; the watch goes on."""
    async with following(client) as seen:
        await eventually(lambda: synced(seen))
        for watcher in api.store.watchers:
            watcher.pending.put_nowait(b"<html>502</html>\n")
        await eventually(lambda: Resumed() in seen)
        api.store.put("pods", pod("a"))
        await eventually(lambda: names(seen) == ["a"])


async def test_refused_connections_make_few_calls(api: ModelApiServer, client: KubeClient) -> None:
    """Each try waits longer than the one before: no hot loop against a dead API server."""
    timings = WatchTimings(first_delay_seconds=0.05, longest_delay_seconds=10)

    async with following(client, timings) as seen:
        await eventually(lambda: synced(seen))
        await api.refuse()
        await asyncio.sleep(1.0)

    assert 2 <= sum(isinstance(event, Interrupted) for event in seen) <= 7


async def test_watches_that_are_closed_at_once_make_few_calls(
    api: ModelApiServer, client: KubeClient
) -> None:
    """A clean end right after the start counts as a failure."""
    api.close_watches_at_once = True

    async with following(client, WatchTimings(0.05, 10)):
        await eventually(lambda: api.requests)
        await asyncio.sleep(1.0)

    assert 2 <= len(api.requests) <= 7


async def test_retry_after_is_honoured(api: ModelApiServer, client: KubeClient) -> None:
    """The API server's wish is longer than our own delay, so it wins."""
    api.lie(429, retry_after="1", query={"watch": "true"})

    async with following(client) as seen:
        await eventually(lambda: synced(seen))

    first, second = (call.at for call in api.requests[:2])
    assert second - first >= 1.0


async def test_a_forbidden_collection_says_so_and_recovers(
    api: ModelApiServer, client: KubeClient
) -> None:
    """The reason reaches the consumer; once the right is granted, the view comes."""
    lie = api.lie(403, times=10**6, reason="Forbidden", message='cannot list resource "pods"')

    async with following(client) as seen:
        await eventually(lambda: seen)
        lie.times = 0
        await eventually(lambda: synced(seen))

    assert isinstance(seen[0], Interrupted)
    assert isinstance(seen[0].fault, ForbiddenError)


async def test_a_selector_is_sent(api: ModelApiServer, client: KubeClient) -> None:
    """Only the node's own pods cross the wire."""
    api.store.put("pods", pod("ours"))
    api.store.put("pods", pod("theirs", node="other"))

    async with following(client, selector="spec.nodeName=burst") as seen:
        await eventually(lambda: synced(seen))

    assert names(seen) == ["ours"]


async def test_a_burst_of_a_thousand_pods_is_cheap(api: ModelApiServer, client: KubeClient) -> None:
    """1,000 pods come through one watch without being lost, listed again or holding the loop."""
    longest = 0.0

    async with following(client) as seen:
        await eventually(lambda: synced(seen))
        for number in range(1000):
            api.store.put("pods", pod(f"p{number}", annotations={"padding": "x" * 4000}))
        while len(names(seen)) < 1000:
            before = time.process_time()
            await asyncio.sleep(0)
            longest = max(longest, time.process_time() - before)

    assert synced(seen) == 1
    assert longest < 0.5
