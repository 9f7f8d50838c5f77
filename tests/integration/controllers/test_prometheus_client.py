"""Prometheus' HTTP API over a socket: numbers, silence, refusals, rubbish."""

from __future__ import annotations

import math
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from vk_provider.controllers.prometheus_client import PrometheusClient, Sample
from vk_provider.controllers.webhook_pki import begin
from vk_provider.faults import UnavailableError
from vk_provider.secrets import SecretSource
from vk_provider.settings_bursting_prometheus import PrometheusSettings

Answer = Any


@asynccontextmanager
async def asking(
    answer: Answer, code: int = 200, serving: ssl.SSLContext | None = None, **more: Any
) -> AsyncIterator[PrometheusClient]:
    """A client of a server that always gives this answer; `asked` is what came in."""

    async def serve(request: web.Request) -> web.Response:
        form = await request.post()
        server["asked"] = (form["query"], request.headers.get("Authorization"))
        if isinstance(answer, str):
            return web.Response(text=answer, status=code)
        return web.json_response(answer, status=code)

    server: dict[str, Any] = {}
    application = web.Application()
    application.router.add_post("/api/v1/query", serve)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=serving)
    await site.start()
    port = runner.addresses[0][1]
    scheme = "http" if serving is None else "https"
    settings = PrometheusSettings(f"{scheme}://127.0.0.1:{port}/", **more)
    try:
        async with PrometheusClient(settings) as client:
            yield client
    finally:
        await runner.cleanup()
        asked.append(server.get("asked"))


asked: list[Any] = []


def vector(*values: str) -> dict[str, Any]:
    """A vector of these values."""
    result = [{"metric": {"n": str(i)}, "value": [1.0, v]} for i, v in enumerate(values)]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


async def test_a_vector_is_samples() -> None:
    """With labels; what is no sample is left out."""
    body = vector("1.5", "x", "+Inf")
    body["data"]["result"] += [{"metric": 3, "value": [0, "1"]}, {"value": [0, "2"]}, 7, None]
    body["data"]["result"].append({"metric": {"a": 5, "b": "c"}, "value": [0, "3"]})

    async with asking(body) as client:
        assert await client.query("up") == [
            Sample({"n": "0"}, 1.5),
            Sample({"n": "2"}, math.inf),
            Sample({}, 1),
            Sample({}, 2),
            Sample({"b": "c"}, 3),
        ]


async def test_a_number_is_the_only_sample() -> None:
    """None where there is none; several are a mistake of the query."""
    async with asking(vector("2")) as client:
        assert await client.number("up") == 2
    for nothing in (vector(), vector("NaN"), vector("+Inf", "-Inf")):
        async with asking(nothing) as client:
            assert await client.number("up") is None
    async with asking(vector("1", "2")) as client:
        with pytest.raises(UnavailableError, match="found 2 samples"):
            await client.number("up")


async def test_a_scalar_is_a_number_too() -> None:
    """`time()` is one."""
    body = {"status": "success", "data": {"resultType": "scalar", "result": [1.0, "7"]}}
    async with asking(body) as client:
        assert await client.number("time()") == 7


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ({"status": "error", "error": "parse error"}, 400, "parse error"),
        ("<html>", 502, "answered 502: <html>"),
        ("[]", 200, "answered 200"),
        (
            {"status": "success", "data": {"resultType": "matrix", "result": []}},
            200,
            "found a matrix, wanted a vector",
        ),
    ],
)
async def test_rubbish_is_no_answer(answer: Answer, code: int, words: str) -> None:
    """With what came instead."""
    async with asking(answer, code) as client:
        with pytest.raises(UnavailableError, match=words):
            await client.query("up")


async def test_nobody_there_is_no_answer() -> None:
    """A refused connection."""
    async with PrometheusClient(PrometheusSettings("http://127.0.0.1:1")) as client:
        with pytest.raises(UnavailableError, match="Prometheus at http"):
            await client.query("up")
    async with PrometheusClient(PrometheusSettings("http://127.0.0.1:1")):
        pass  # never asked, nothing to close


async def test_a_token_is_read_at_every_use(tmp_path: Path) -> None:
    """A rotated file needs no restart; one that is missing or no token is no answer."""
    file = tmp_path / "token"
    file.write_text("t1\n")
    token = SecretSource(file=str(file))
    async with asking(vector("1"), bearer_token=token) as client:
        await client.query("up")
        file.write_text("t2")
        await client.query("up")
        file.write_text("t3\nt4")
        with pytest.raises(UnavailableError, match="characters that no token has"):
            await client.query("up")
        file.unlink()
        with pytest.raises(UnavailableError, match="can't be read"):
            await client.query("up")
    assert asked[-1] == ("up", "Bearer t2")


async def test_a_ca_of_its_own_is_used(tmp_path: Path) -> None:
    """One that is no certificate is no answer either."""
    file = tmp_path / "ca.crt"
    file.write_text("nonsense")
    settings = PrometheusSettings("https://127.0.0.1:1", ca_file=str(file))
    async with PrometheusClient(settings) as client:
        with pytest.raises(UnavailableError):
            await client.query("up")


async def test_a_rotated_authority_is_believed_without_a_restart(tmp_path: Path) -> None:
    """Those of a cluster are replaced within the year that a process may run."""
    held, other = (begin(["127.0.0.1"], datetime.now(UTC)) for _ in range(2))
    pair, file = tmp_path / "pair.pem", tmp_path / "ca.crt"
    pair.write_bytes(held.serving.chain + held.serving.key)
    file.write_bytes(other.bundle)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(pair)
    async with asking(vector("1"), serving=serving, ca_file=str(file)) as client:
        with pytest.raises(UnavailableError, match="certificate"):
            await client.query("up")
        file.write_bytes(held.bundle)
        assert await client.number("up") == 1
