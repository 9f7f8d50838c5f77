"""The other routes, and the bounds of the listener."""

import asyncio
import json
from contextlib import suppress

import pytest

from tests.integration.server.bench import Caller, client_context, eventually
from tests.integration.server.conftest import Stage


@pytest.mark.parametrize("path", ["/healthz", "/healthz/ping", "/healthz/log", "/healthz/syncloop"])
async def test_healthz_is_ok(admin: Caller, path: str) -> None:
    """One word."""
    assert await admin.get(path) == (200, "ok")


async def test_unknown_checks_are_404(admin: Caller) -> None:
    """And named."""
    status, text = await admin.get("/healthz/x")
    assert status == 404
    assert "'x'" in text


@pytest.mark.parametrize("path", ["/pods", "/runningpods/", "/runningpods"])
async def test_pods_are_a_pod_list(admin: Caller, path: str) -> None:
    """Of v1, with their status."""
    status, text = await admin.get(path)
    body = json.loads(text)
    assert (status, body["kind"], body["apiVersion"]) == (200, "PodList", "v1")
    assert [pod["metadata"]["name"] for pod in body["items"]] == ["p"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/exec/ns/p/c?command=x&output=1", 501),
        ("GET", "/exec/ns/p/u-1/c?command=x&output=1", 501),
        ("POST", "/attach/ns/p/c?output=1", 501),
        ("GET", "/portForward/ns/p", 501),
        ("POST", "/run/ns/p/c", 405),
        ("GET", "/logs/", 501),
        ("POST", "/checkpoint/ns/p/c", 404),
        ("GET", "/debug/pprof/heap", 405),
    ],
)
async def test_what_is_not_served_says_so(
    admin: Caller, method: str, path: str, status: int
) -> None:
    """A sentence for each."""
    answer = await admin.ask(method, path)
    assert answer[0] == status
    assert " " in answer[1]


async def test_a_wrong_method_is_405_with_allow(admin: Caller) -> None:
    """As a kubelet answers."""
    async with admin.session.post(admin.base + "/pods") as response:
        assert response.status == 405
        assert response.headers["Allow"] == "GET"


async def test_strangers_learn_no_versions(admin: Caller) -> None:
    """No Server header."""
    async with admin.session.get(admin.base + "/healthz") as response:
        assert "Server" not in response.headers


async def test_answers_are_observed_by_route(stage: Stage, admin: Caller) -> None:
    """By pattern, so that a metric has few series."""
    await admin.get("/containerLogs/ns/p/c")
    await admin.get("/nothing")
    assert stage.answers == [
        ("/containerLogs/{namespace}/{pod}/{container}", 200),
        ("other", 404),
    ]


async def test_a_large_body_is_refused(admin: Caller) -> None:
    """No endpoint takes one."""
    assert (await admin.ask("POST", "/stats/summary", data=b"x" * 100_000))[0] == 413


async def test_a_large_header_is_refused(admin: Caller) -> None:
    """Before anything else looks at it."""
    assert (await admin.get("/pods", headers={"X": "y" * 20_000}))[0] == 400


async def test_too_many_requests_at_once_are_refused(stage: Stage, admin: Caller) -> None:
    """And served again when there is room."""
    path = admin.base + "/containerLogs/ns/p/c?follow=true"
    streams = [await admin.session.get(path) for _ in range(8)]
    assert (await admin.get("/healthz"))[0] == 503
    for stream in streams:
        stream.close()
    await eventually(lambda: stage.backend.open == 0)
    assert (await admin.get("/healthz"))[0] == 200


async def test_a_crowd_that_says_nothing_makes_room(stage: Stage, admin: Caller) -> None:
    """The API server gets in, however many connections strangers hold."""
    context = client_context()
    idle = [await asyncio.open_connection("127.0.0.1", stage.port, ssl=context) for _ in range(12)]

    assert await admin.get("/healthz") == (200, "ok")
    with suppress(ConnectionResetError):
        assert await asyncio.wait_for(idle[0][0].read(), 10) == b""
    assert not idle[-1][0].at_eof()

    for _, opened in idle:
        opened.close()


async def test_strangers_keep_no_connection(stage: Stage) -> None:
    """Nor can they hold one by asking for something."""
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.port, ssl=client_context())
    writer.write(b"GET /pods HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await asyncio.wait_for(reader.read(), 10)).startswith(b"HTTP/1.1 401 ")
    writer.close()


async def test_too_many_connections_that_are_in_use_are_refused(stage: Stage) -> None:
    """Nobody who was let in is cut off for a newcomer."""
    context = client_context(
        stage.tls.chain, stage.authority.client(stage.folder, "admin", "admins")
    )
    used = [await asyncio.open_connection("127.0.0.1", stage.port, ssl=context) for _ in range(12)]
    for reader, writer in used:
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.port, ssl=context)

    assert await asyncio.wait_for(reader.read(), 10) == b""
    assert not used[0][0].at_eof()

    for _, opened in (*used, (reader, writer)):
        opened.close()


async def test_a_slow_loris_is_cut_off(stage: Stage) -> None:
    """Half a header is not worth a connection for ever."""
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.port, ssl=client_context())
    writer.write(b"GET /pods HTTP/1.1\r\nHost: x\r\n")
    assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
