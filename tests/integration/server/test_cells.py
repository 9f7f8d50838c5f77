"""Every cell of the table in docs/kubelet-api.md: who gets in, by which right, and the limits."""

from __future__ import annotations

import asyncio

import pytest

from tests.integration.server.bench import Caller, client_context
from tests.integration.server.conftest import Stage
from tests.integration.server.streams_bench import ask
from tests.unit.server.route_table import cells
from vk_provider.server.access import Identity

CELLS = cells()
RIGHTS = [
    (method, path, verb, subresource)
    for method, path, verb, subresources in CELLS
    for subresource in subresources
]
WRONG = {"get": "create", "create": "get", "update": "get"}


def concrete(path: str) -> str:
    """A request for this route."""
    values = {"{namespace}": "ns", "{pod}": "p", "{uid}": "u-1", "{container}": "c"}
    values |= {"{check}": "ping", "{path:.*}": "x"}
    for name, value in values.items():
        path = path.replace(name, value)
    return path


def bearer() -> dict[str, str]:
    """The token of the caller in these tests."""
    return {"Authorization": "Bearer t"}


@pytest.fixture
def caller(stage: Stage, stranger: Caller) -> Caller:
    """Somebody with a token and no right."""
    stage.judge.tokens["t"] = Identity("somebody", ("group",))
    return stranger


@pytest.mark.parametrize(("method", "path", "_verb", "_subresources"), CELLS)
async def test_strangers_are_401(
    stranger: Caller, method: str, path: str, _verb: str, _subresources: tuple[str, ...]
) -> None:
    """On every route, whatever it would answer."""
    assert await stranger.ask(method, concrete(path)) == (401, "Unauthorized")
    unknown = {"Authorization": "Bearer unknown"}
    assert (await stranger.ask(method, concrete(path), headers=unknown))[0] == 401


@pytest.mark.parametrize(("method", "path", "verb", "subresources"), CELLS)
async def test_a_name_without_a_right_is_403(
    caller: Caller, method: str, path: str, verb: str, subresources: tuple[str, ...]
) -> None:
    """With the right that is missing."""
    status, text = await caller.ask(method, concrete(path), headers=bearer())

    assert status == 403
    names = ", ".join(subresources)
    assert text == (
        f"Forbidden (user=somebody, verb={verb}, resource=nodes, subresource(s)={names})"
    )


@pytest.mark.parametrize(("method", "path", "verb", "subresource"), RIGHTS)
async def test_each_right_of_a_cell_lets_in(
    stage: Stage, caller: Caller, method: str, path: str, verb: str, subresource: str
) -> None:
    """It alone; not another verb on the same subresource."""
    stage.judge.rights.add(("somebody", WRONG[verb], subresource))
    assert (await caller.ask(method, concrete(path), headers=bearer()))[0] == 403

    stage.judge.rights.add(("somebody", verb, subresource))
    stage.now += 60
    assert (await caller.ask(method, concrete(path), headers=bearer()))[0] not in (401, 403)


@pytest.mark.parametrize(("method", "path", "_verb", "_subresources"), CELLS)
async def test_a_certificate_is_a_name_too(
    admin: Caller, method: str, path: str, _verb: str, _subresources: tuple[str, ...]
) -> None:
    """That of the API server arrives so."""
    status, _ = await admin.ask(method, concrete(path))
    assert status not in (401, 403) or path.startswith("/debug")


@pytest.mark.parametrize(("method", "path", "_verb", "_subresources"), CELLS)
async def test_an_api_server_that_is_away_lets_nobody_in(
    stage: Stage, admin: Caller, method: str, path: str, _verb: str, _subresources: tuple[str, ...]
) -> None:
    """Fail closed."""
    stage.judge.broken = True
    assert (await admin.ask(method, concrete(path)))[0] == 500


@pytest.mark.parametrize(("method", "path", "_verb", "_subresources"), CELLS)
async def test_a_large_body_is_413(
    admin: Caller, method: str, path: str, _verb: str, _subresources: tuple[str, ...]
) -> None:
    """On every route: none takes one."""
    answer = await admin.ask(method, concrete(path), data=b"x" * 70_000)
    assert answer[0] == 413


@pytest.mark.parametrize("path", ["/exec/ns/p/c", "/attach/ns/p/c", "/portForward/ns/p"])
async def test_a_websocket_of_a_reader_opens_no_stream(
    stage: Stage, caller: Caller, path: str
) -> None:
    """It is a GET; the right to get does not do."""
    stage.judge.rights.add(("somebody", "get", "proxy"))
    headers = bearer() | {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    status, text = await caller.get(f"{path}?command=id&output=1", headers=headers)
    assert status == 403
    assert "verb=create" in text


async def test_a_long_command_fits_a_request(stage: Stage) -> None:
    """A script of 30 KiB, escaped; four times as much does not."""
    path = "/exec/ns/p/c?output=1&command="
    head, _, writer = await ask(stage, path + "%20" * 30_000, ["Connection: close"])
    writer.close()
    assert "400" not in head.splitlines()[0]

    head, _, writer = await ask(stage, path + "%20" * 50_000, ["Connection: close"])
    writer.close()
    assert "400" in head.splitlines()[0]


async def test_many_header_lines_are_400(stage: Stage) -> None:
    """A hundred are enough."""
    head, _, writer = await ask(stage, "/pods", [f"X-{number}: x" for number in range(120)])
    writer.close()
    assert "400" in head.splitlines()[0]


async def test_the_oldest_tls_is_1_2(stage: Stage) -> None:
    """Whatever a client would take."""
    context = client_context()
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.port, ssl=context)
    assert writer.get_extra_info("ssl_object").version() in ("TLSv1.2", "TLSv1.3")
    assert not reader.at_eof()
    writer.close()
