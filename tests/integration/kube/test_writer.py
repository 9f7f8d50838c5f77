"""Writes about pods: exactly the pod that was meant, one call each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.eventually import eventually, running
from tests.support.model_apiserver import ModelApiServer
from tests.support.objects import pod
from vk_provider.faults import ConflictError, InvalidObjectError, KubeUnavailableError
from vk_provider.kube.cache import PodCache
from vk_provider.kube.client import KubeClient
from vk_provider.kube.writer import StatusWriter
from vk_provider.pods.types import PodUID

RUNNING = {"status": {"phase": "Running"}}


@pytest.fixture
async def cache(api: ModelApiServer, client: KubeClient) -> AsyncIterator[PodCache]:
    """A synced cache that holds pod ``a``; the calls before it are forgotten."""
    api.store.put("pods", pod("a"))
    cache = PodCache(client, "burst")
    async with running(cache.run()):
        await eventually(cache.synced.is_set)
        api.requests.clear()
        yield cache


@pytest.fixture
def writer(client: KubeClient, cache: PodCache) -> StatusWriter:
    """A writer that feeds that cache."""
    return StatusWriter(client, cache)


async def test_a_write_is_one_call_and_its_answer_is_cached(
    api: ModelApiServer, cache: PodCache, writer: StatusWriter
) -> None:
    """A strategic merge PATCH of the status with the UID; no GET before or after."""
    patch = {**RUNNING, "metadata": {"annotations": {"x": "y"}}}

    answer = await writer.write(pod("a"), patch)

    assert cache.get(PodUID("uid-a")) is answer
    [call] = api.requests
    assert (call.verb, call.path) == ("PATCH", "/api/v1/namespaces/default/pods/a/status")
    assert call.body == {**RUNNING, "metadata": {"annotations": {"x": "y"}, "uid": "uid-a"}}
    assert call.headers["Content-Type"] == "application/strategic-merge-patch+json"


@pytest.mark.parametrize("gone", [pod("b"), pod("a", uid="earlier")])
async def test_a_pod_that_is_gone_is_none(writer: StatusWriter, gone: dict[str, object]) -> None:
    """Not found, or its name is another pod's now: the same news."""
    assert await writer.write(gone, RUNNING) is None
    await writer.remove(gone)


async def test_a_patch_that_is_refused_is_a_fault(
    api: ModelApiServer, writer: StatusWriter
) -> None:
    """422 for another field is our bug and must not look like a deleted pod."""
    api.lie(422, message="status.podIP: Invalid value")

    with pytest.raises(InvalidObjectError, match="podIP"):
        await writer.write(pod("a"), RUNNING)


async def test_a_conflict_is_tried_again(api: ModelApiServer, writer: StatusWriter) -> None:
    """The API server gave up after its own tries; we try a few times more."""
    api.lie(409, message="the object has been modified", times=3)

    assert await writer.write(pod("a"), RUNNING) is not None
    assert len(api.requests) == 4


async def test_an_endless_conflict_is_a_fault(api: ModelApiServer, writer: StatusWriter) -> None:
    """Not for ever."""
    api.lie(409, message="the object has been modified", times=99)

    with pytest.raises(ConflictError):
        await writer.write(pod("a"), RUNNING)


async def test_removing_is_final_and_precise(
    api: ModelApiServer, cache: PodCache, writer: StatusWriter
) -> None:
    """DELETE without grace and with the UID."""
    await writer.remove(pod("a"))

    await eventually(lambda: not cache.pods())
    [call] = api.requests
    assert call.body["gracePeriodSeconds"] == 0
    assert call.body["preconditions"] == {"uid": "uid-a"}


async def test_a_refused_removal_is_a_fault(api: ModelApiServer, writer: StatusWriter) -> None:
    """A conflict about anything but the UID means that the pod is still there."""
    api.lie(409, verb="DELETE", message="a webhook says no")

    with pytest.raises(ConflictError, match="webhook"):
        await writer.remove(pod("a"))


async def test_a_burst_goes_out_in_order(
    api: ModelApiServer, client: KubeClient, cache: PodCache
) -> None:
    """So many at a time, first come first served."""
    writer = StatusWriter(client, cache, concurrency=1)
    for number in range(20):
        api.store.put("pods", pod(f"p{number}"))

    await asyncio.gather(*(writer.write(pod(f"p{n}"), RUNNING) for n in range(20)))

    patched = [call.path.split("/")[-2] for call in api.requests if call.verb == "PATCH"]
    assert patched == [f"p{number}" for number in range(20)]


async def test_what_waits_for_its_turn_is_not_sent_once_another_may_lead(
    api: ModelApiServer, client: KubeClient, cache: PodCache
) -> None:
    """It may say of a pod what a new leader knows better."""
    writer = StatusWriter(client, cache, concurrency=1, may_write=lambda: not api.requests)

    written, *unsent = await asyncio.gather(
        writer.write(pod("a"), RUNNING),
        writer.write(pod("a"), RUNNING),
        writer.remove(pod("a")),
        return_exceptions=True,
    )

    assert written is not None
    assert [type(each) for each in unsent] == [KubeUnavailableError] * 2
    assert len(api.requests) == 1
