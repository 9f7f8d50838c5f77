"""The client against a service that answers what no service should."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from vk_provider_runpod.client import RunPodClient
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.registries import Registries, registry_name

from vk_provider.faults import (
    GarbledAnswerError,
    OutcomeUnknownError,
    ProviderError,
    RejectedError,
    UnavailableError,
)
from vk_provider.pods.types import RegistryCredential

Handle = Callable[[web.Request], Any]
LOGIN = RegistryCredential("ghcr.io", "me", "correct-horse-battery")


@asynccontextmanager
async def client_of(handle: Handle, **headers: str) -> AsyncIterator[RunPodClient]:
    """A client of a service that answers every call with what ``handle`` gives: JSON, a response,
    or a tuple of a status and JSON."""

    async def serve(request: web.Request) -> web.StreamResponse:
        given = handle(request)
        if isinstance(given, web.StreamResponse):
            return given
        status, body = given if isinstance(given, tuple) else (200, given)
        return web.Response(
            status=status, text=json.dumps(body), content_type="application/json", headers=headers
        )

    async def key() -> str:
        return "rpa_key"

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with RunPodClient(RunPodConfig(None, url), "test/1", key) as client:
            yield client
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"pods": None},
        {"pods": ["x"]},
        {"pods": [{}]},
        {"pods": [{"id": 7}]},
        {"pods": [{"id": ""}]},
        {"pods": [], "pagination": {"hasNextPage": True}},
        {"pods": [], "pagination": {"hasNextPage": True, "nextCursor": ""}},
        {"pods": [], "pagination": {"hasNextPage": True, "nextCursor": "round and round"}},
    ],
)
async def test_a_list_that_may_lack_something_is_garbled(page: dict[str, Any]) -> None:
    """What is left out would look like a death."""
    async with client_of(lambda _: page) as client:
        with pytest.raises(GarbledAnswerError):
            await client.list_pods()


@pytest.mark.parametrize(
    "page",
    [
        {"pods": [{"id": "a"}]},
        {"pods": [{"id": "a"}], "pagination": None},
        {"pods": [{"id": "a"}, {"id": "a"}], "pagination": {"hasNextPage": False}},
    ],
)
async def test_a_list_is_whole_without_pages_too(page: dict[str, Any]) -> None:
    """As the document has it; an id counts once."""
    async with client_of(lambda _: page) as client:
        pods, _ = await client.list_pods()

    assert [pod["id"] for pod in pods] == ["a"]


async def test_pages_are_walked_by_cursor() -> None:
    """With the largest page that is allowed."""
    asked: list[dict[str, str]] = []

    def handle(request: web.Request) -> Any:
        asked.append(dict(request.query))
        number = len(asked)
        more = {"hasNextPage": number < 3, "nextCursor": f"page {number}"}
        return {"pods": [{"id": str(number)}], "pagination": more}

    async with client_of(handle) as client:
        pods, _ = await client.list_pods()

    assert [pod["id"] for pod in pods] == ["1", "2", "3"]
    assert asked[0] == {"limit": "1000"}
    assert asked[2] == {"limit": "1000", "cursor": "page 2"}


@pytest.mark.parametrize("date", ["yesterday", ""])
async def test_without_a_servers_time_ours_counts(date: str) -> None:
    """Only the differences between lists matter."""
    async with client_of(lambda _: {"pods": []}, Date=date) as client:
        _, moment = await client.list_pods()

    assert abs(moment - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.parametrize("created", [{}, {"id": None}, {"id": ""}, {"id": 7}])
async def test_a_create_that_names_no_id_is_of_unknown_outcome(created: dict[str, Any]) -> None:
    """Something was made, and nobody knows what it is called."""
    async with client_of(lambda _: (201, created)) as client:
        with pytest.raises(OutcomeUnknownError):
            await client.create_pod({"name": "x"})


async def test_a_redirect_is_not_followed() -> None:
    """The key would go along."""
    seen: list[str] = []

    def handle(request: web.Request) -> Any:
        seen.append(request.path)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    async with client_of(handle) as client:
        with pytest.raises(ProviderError):
            await client.list_pods()

    assert seen == ["/v2/pods"]


async def test_an_id_cannot_lead_to_another_path() -> None:
    """Ids come from the service, and are quoted all the same."""
    seen: list[str] = []

    def handle(request: web.Request) -> Any:
        seen.append(request.raw_path)
        return web.Response(status=204)

    async with client_of(handle) as client:
        await client.delete_pod("../registries/x")

    assert seen == ["/v2/pods/..%2Fregistries%2Fx"]


async def test_the_key_is_in_the_header_alone() -> None:
    """Addresses end up in logs."""
    seen: list[tuple[str, str | None]] = []

    def handle(request: web.Request) -> Any:
        seen.append((request.raw_path, request.headers.get("Authorization")))
        return {"pods": []}

    async with client_of(handle) as client:
        await client.list_pods()

    assert seen == [("/v2/pods?limit=1000", "Bearer rpa_key")]


async def test_a_registry_without_an_id_is_a_fault() -> None:
    """Nothing was made that is billed, so it may be tried again."""

    def handle(request: web.Request) -> Any:
        return {"registries": ["x", {"name": "other"}]} if request.method == "GET" else (201, {})

    async with client_of(handle) as client:
        with pytest.raises(UnavailableError):
            await Registries(client).id_of(LOGIN)


async def test_a_registry_that_is_taken_is_looked_up_again() -> None:
    """A sibling was quicker; a refusal for another reason stays one."""
    known: list[dict[str, str]] = []
    names: list[str] = []

    def taken(request: web.Request) -> Any:
        if request.method == "GET":
            return {"registries": list(known)}
        known.extend({"id": "theirs", "name": name} for name in names)
        return 400, {"detail": "name exists"}

    async with client_of(taken) as client:
        with pytest.raises(RejectedError) as raised:
            await Registries(client).id_of(LOGIN)
        names.append(registry_name(LOGIN))
        assert await Registries(client).id_of(LOGIN) == "theirs"

    assert LOGIN.password not in str(raised.value)
