"""The plain port: metrics and health."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.integration.server.bench import Caller
from vk_provider.metrics import Metrics
from vk_provider.server.plain import PLAIN_LIMITS, plain_application, plain_listener

STATE: dict[str, str | None] = {}


@pytest.fixture
async def plain() -> AsyncIterator[Caller]:
    """A running plain port whose check ``cache`` says what STATE says."""
    STATE.clear()
    metrics = Metrics()
    metrics.leader.labels("burst").set(1)
    application = plain_application(metrics.registry, {}, {"cache": lambda: STATE.get("cache")})
    listener = plain_listener(application, "127.0.0.1", 0)
    port = await listener.start()
    async with aiohttp.ClientSession() as session:
        yield Caller(session, f"http://127.0.0.1:{port}")
    await listener.close()
    await listener.close()


async def test_metrics_are_exposed(plain: Caller) -> None:
    """In the text format by default."""
    status, text = await plain.get("/metrics")
    assert status == 200
    assert 'vk_provider_leader{node="burst"} 1.0' in text


async def test_openmetrics_on_request(plain: Caller) -> None:
    """As Prometheus asks for it."""
    headers = {"Accept": "application/openmetrics-text; version=1.0.0"}
    async with plain.session.get(plain.base + "/metrics", headers=headers) as response:
        assert response.content_type == "application/openmetrics-text"
        assert (await response.text()).endswith("# EOF\n")


async def test_live_and_ready(plain: Caller) -> None:
    """Two groups, two answers."""
    STATE["cache"] = "pods are not synced"
    assert await plain.get("/livez") == (200, "ok")
    status, text = await plain.get("/readyz")
    assert status == 500
    assert "[-]cache failed: pods are not synced" in text
    assert (await plain.get("/readyz/ping"))[0] == 200
    assert (await plain.get("/readyz/cache"))[0] == 500
    assert await plain.get("/readyz?exclude=cache") == (200, "ok")


async def test_verbose_lists_every_check(plain: Caller) -> None:
    """As Kubernetes does."""
    text = "[+]ping ok\n[+]cache ok\nreadyz check passed\n"
    assert await plain.get("/readyz?verbose") == (200, text)


async def test_a_taken_port_is_an_error(plain: Caller) -> None:
    """Not a server that nobody can reach."""
    port = int(plain.base.rsplit(":", 1)[1])
    second = plain_listener(plain_application(Metrics().registry, {}, {}), "127.0.0.1", port)
    with pytest.raises(OSError, match="in use"):
        await second.start()


async def test_strangers_can_not_keep_the_kubelet_from_asking(plain: Caller) -> None:
    """Whoever reaches the port could else have this process killed, by holding connections: those
    that are oldest make room, whether they asked for something, read it or not."""
    port = int(plain.base.rsplit(":", 1)[1])
    held = []
    for number in range(2 * PLAIN_LIMITS.connections):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if number % 3 == 0:
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readline()
        if number % 3 == 1:
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 200)
        held.append(writer)
    assert await plain.get("/livez") == (200, "ok")
    for writer in held:
        writer.close()
