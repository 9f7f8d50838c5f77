"""The client's verbs over real sockets: what is repeated, what is not, what failures become."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.support.eventually import eventually, running
from tests.support.model_apiserver import ModelApiServer
from tests.support.objects import keyed, pod
from vk_provider.faults import (
    ConflictError,
    ForbiddenError,
    GoneError,
    KubeNotFoundError,
    KubeUnavailableError,
)
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient, PatchKind

A = paths.pod("default", "a")


def verbs(api: ModelApiServer) -> list[str]:
    """The verbs of all calls, in order."""
    return [call.verb for call in api.requests]


async def test_an_object_there_and_back(api: ModelApiServer, client: KubeClient) -> None:
    """Create, get, patch, replace, delete: plain dicts, no field lost."""
    created = await client.create(paths.pods("default"), {**pod("a"), "unknown": {"x": None}})
    patched = await client.patch(A, {"metadata": {"labels": {"x": "y"}}})
    replaced = await client.replace(A, {**patched, "spec": {}})

    assert created["unknown"] == {"x": None}
    assert (await client.get(A))["metadata"] == replaced["metadata"]
    await client.delete(A, uid="uid-a", grace_seconds=0)
    with pytest.raises(KubeNotFoundError):
        await client.get(A)


async def test_writes_name_their_field_manager_and_agent(
    api: ModelApiServer, client: KubeClient
) -> None:
    """Whoever reads managedFields or an audit log sees who wrote."""
    await client.create(paths.pods("default"), pod("a"))

    assert api.requests[0].query["fieldManager"] == "vk-provider"
    assert api.requests[0].headers["User-Agent"].startswith("vk-provider/")


@pytest.mark.parametrize("kind", PatchKind)
async def test_a_patch_says_how_it_is_meant(
    api: ModelApiServer, client: KubeClient, kind: PatchKind
) -> None:
    """The content type decides."""
    api.lie(404)
    with pytest.raises(KubeNotFoundError):
        await client.patch(A, {}, kind=kind)

    assert api.requests[0].headers["Content-Type"] == kind


@pytest.mark.parametrize("code", [429, 500, 503, 504])
async def test_what_may_be_repeated_is_repeated(
    api: ModelApiServer, client: KubeClient, code: int
) -> None:
    """A merging PATCH means the same twice."""
    api.store.put("pods", pod("a"))
    api.lie(code, verb="PATCH", times=2)

    await client.patch(A, {"metadata": {"uid": "uid-a"}})

    assert verbs(api) == ["PATCH"] * 3


async def test_repeating_ends(api: ModelApiServer, client: KubeClient) -> None:
    """After five tries the fault reaches the caller."""
    api.lie(503, times=99, message="etcd is away")

    with pytest.raises(KubeUnavailableError, match="etcd is away"):
        await client.get(A)

    assert verbs(api) == ["GET"] * 5


async def test_a_create_is_not_repeated(api: ModelApiServer, client: KubeClient) -> None:
    """A POST whose answer was an error may have been served."""
    api.lie(500, verb="POST")

    with pytest.raises(KubeUnavailableError):
        await client.create(paths.pods("default"), pod("a"))

    assert verbs(api) == ["POST"]


async def test_a_create_that_was_not_served_is_repeated(
    api: ModelApiServer, client: KubeClient
) -> None:
    """A refused connection proves that nothing was done; the API server comes back meanwhile."""
    await api.refuse()

    async def create() -> None:
        await client.create(paths.pods("default"), pod("a"))

    async with running(create()) as task:
        await asyncio.sleep(0.1)
        await api.serve()
        await eventually(task.done)

    assert verbs(api) == ["POST"]


async def test_a_long_retry_after_is_left_to_the_caller(
    api: ModelApiServer, client: KubeClient
) -> None:
    """The client waits for seconds, not for minutes."""
    api.lie(429, retry_after="120", times=99)
    started = time.monotonic()

    with pytest.raises(KubeUnavailableError) as caught:
        await client.get(A)

    assert caught.value.retry_after_seconds == 120
    assert time.monotonic() - started < 10
    assert len(api.requests) == 1


async def test_a_401_renews_the_identity_once(api: ModelApiServer) -> None:
    """The second try carries the fresh token; a second 401 is a refusal."""
    api.store.put("pods", pod("a"))
    identity = api.identity()
    async with KubeClient(identity) as client:
        api.lie(401)
        await client.get(A)
        api.lie(401, times=2)
        with pytest.raises(ForbiddenError):
            await client.get(A)

    assert api.requests[1].headers["Authorization"] == "Bearer token-1"
    assert identity.refreshed == 2


async def test_a_stream_renews_the_identity_too(api: ModelApiServer, client: KubeClient) -> None:
    """Watches live longer than tokens."""
    api.lie(401)

    async with client.stream_lines(paths.pods(), {"watch": True, "sendInitialEvents": True}) as b:
        lines = await anext(b)

    assert b"BOOKMARK" in lines[0]


async def test_a_lost_answer_of_a_conditional_replace_is_a_conflict(
    api: ModelApiServer, client: KubeClient
) -> None:
    """It was ours; the caller looks again and finds its own write."""
    stored = api.store.put("pods", pod("a"))
    api.lie(0, verb="PUT", after_commit=True)

    with pytest.raises(ConflictError):
        await client.replace(A, {**stored, "status": {"phase": "Running"}})

    assert (await client.get(A))["status"]["phase"] == "Running"


async def test_a_precondition_protects_the_namesake(
    api: ModelApiServer, client: KubeClient
) -> None:
    """Another UID under the same name is another pod."""
    api.store.put("pods", pod("a", uid="new"))

    with pytest.raises(ConflictError):
        await client.delete(A, uid="old", grace_seconds=0)


async def test_an_expired_page_begins_the_list_again(
    api: ModelApiServer, client: KubeClient
) -> None:
    """All in one page then, so that it can't expire again; nothing comes twice."""
    for number in range(700):
        api.store.put("pods", pod(f"p{number}"))
    lie = api.lie(410, reason="Expired", times=0)
    listing = asyncio.create_task(client.list(paths.pods()))
    lie.times, lie.path = 1, "/pods"
    lie.query = {"continue": f"{api.store.version}@500"}

    items, version = await listing

    assert len(items) == 700
    assert version == str(api.store.version)
    assert "limit" not in api.requests[-1].query


async def test_an_expired_first_page_is_gone(api: ModelApiServer, client: KubeClient) -> None:
    """Without a continue token there is nothing to begin again."""
    api.lie(410, reason="Expired")

    with pytest.raises(GoneError):
        await client.list(paths.pods())


async def test_a_slow_answer_is_a_fault(api: ModelApiServer) -> None:
    """No call waits for ever."""
    api.stalled = True
    async with KubeClient(api.identity(), timeout_seconds=0.1) as client:
        with pytest.raises(KubeUnavailableError, match="no answer in time"):
            await client.get(paths.pods(), retry=False, watch=True, sendInitialEvents=True)


async def test_a_web_page_is_named_as_such(api: ModelApiServer, client: KubeClient) -> None:
    """A proxy's login page is not an empty list."""
    api.lie(200, body=b"<html>please log in</html>")

    with pytest.raises(KubeUnavailableError, match="web page"):
        await client.get(A)


@pytest.mark.parametrize("code", [302, 307])
async def test_no_call_is_carried_elsewhere(
    api: ModelApiServer, client: KubeClient, code: int
) -> None:
    """A redirect would take bodies along: a TokenReview's token, a copy of a Secret."""
    api.lie(code, times=2, body=b"{}")
    with pytest.raises(KubeUnavailableError, match="elsewhere"):
        await client.create(paths.pods("default"), pod("a"))
    with pytest.raises(KubeUnavailableError, match="elsewhere"):
        async with client.stream_lines(A, {"watch": True}):
            pass

    assert not any("elsewhere" in call.path for call in api.requests)


async def test_a_broken_stream_is_a_fault(api: ModelApiServer, client: KubeClient) -> None:
    """A cut connection is not a clean end."""
    params = {"watch": True, "sendInitialEvents": True}
    async with client.stream_lines(paths.pods(), params) as batches:
        await anext(batches)
        await api.refuse()
        with pytest.raises(KubeUnavailableError, match="broke"):
            await anext(batches)


async def test_streams_do_not_take_the_connections_of_calls(api: ModelApiServer) -> None:
    """With one connection and ten open watches a call still gets through."""
    api.store.put("configmaps", keyed("ConfigMap", "c"))
    params = {"watch": True, "sendInitialEvents": True}
    async with KubeClient(api.identity(), connections=1, timeout_seconds=5) as client:

        async def hold() -> None:
            async with client.stream_lines(paths.pods(), params) as batches:
                async for _ in batches:
                    pass

        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(hold()) for _ in range(10)]
            await eventually(lambda: len(api.store.watchers) == 10)
            await client.get(paths.config_maps("default"))
            for watch in watches:
                watch.cancel()


async def test_a_client_must_be_opened(api: ModelApiServer) -> None:
    """Sockets belong to a block."""
    with pytest.raises(RuntimeError, match="async with"):
        await KubeClient(api.identity()).get(A)
