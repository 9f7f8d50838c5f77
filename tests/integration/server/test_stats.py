"""The Summary API and the metrics, over HTTPS."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from tests.integration.server.bench import Caller, SilentBackend, make_pod
from tests.integration.server.conftest import Stage
from vk_provider.faults import UnavailableError
from vk_provider.pods.types import InstanceRef, PodUID
from vk_provider.server.lookup import ServedPod
from vk_provider.streams import ContainerStats, InstanceStats

SCRAPED = ("/metrics", "/metrics/resource", "/metrics/cadvisor", "/metrics/probes", "/metrics/slis")


class MeasuringBackend(SilentBackend):
    """A provider that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.fault: Exception | None = None
        self.hangs = False

    async def read_stats(self) -> tuple[InstanceStats, ...]:
        """One container."""
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.fault is not None:
            raise self.fault
        now = datetime.now(UTC)
        container = ContainerStats(
            "c", now, now, cpu_nanoseconds=10**9 * self.asked, memory_working_set_bytes=5
        )
        return (InstanceStats(PodUID("u-1"), (container,)),)


async def until(probe: Callable[[], Awaitable[bool]], tries: int = 200) -> None:
    """Ask again and again until it is so."""
    for _ in range(tries):
        if await probe():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not happen in time")


@pytest.fixture
def backend(stage: Stage) -> MeasuringBackend:
    """The pod's provider."""
    backend = MeasuringBackend()
    stage.pods.served = ServedPod(make_pod(), backend, InstanceRef("i-1"))
    return backend


@pytest.mark.parametrize("path", SCRAPED)
async def test_every_target_is_up(admin: Caller, path: str) -> None:
    """Also where no backend measures: a 404 would show the target as down."""
    status, _ = await admin.get(path)
    assert status == 200


async def test_the_summary(backend: MeasuringBackend, admin: Caller) -> None:
    """Of the node and its pods; POST is taken as well."""
    status, text = await admin.get("/stats/summary")
    body = json.loads(text)
    assert status == 200
    assert body["node"]["nodeName"] == "burst"
    assert body["pods"][0]["containers"][0]["cpu"]["usageCoreNanoSeconds"] == 10**9
    assert [each["name"] for each in body["pods"][0]["containers"]] == ["c", "d"]
    assert (await admin.ask("POST", "/stats/summary?only_cpu_and_memory=true"))[0] == 200


async def test_many_scrapers_cost_one_call(backend: MeasuringBackend, admin: Caller) -> None:
    """For a while; then there is a new one."""
    await asyncio.gather(*(admin.get("/metrics/resource") for _ in range(5)))
    assert backend.asked == 1

    async def second() -> bool:
        return 'container="c"} 2.0 ' in (await admin.get("/metrics/resource"))[1]

    await until(second)
    assert backend.asked == 2


async def test_a_new_pod_is_measured_soon(
    stage: Stage, backend: MeasuringBackend, admin: Caller
) -> None:
    """Not only when the last measurement is old."""
    await admin.get("/metrics/resource")
    stage.pods.served = ServedPod(make_pod(uid="u-2"), backend, InstanceRef("i-2"))

    status, text = await admin.get("/stats/summary")

    assert (status, backend.asked) == (200, 2)
    assert json.loads(text)["pods"][0]["podRef"]["uid"] == "u-2"


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_backend_that_fails_is_a_scrape_error(
    backend: MeasuringBackend, admin: Caller, hangs: bool
) -> None:
    """And no failed request; nor one that takes for ever."""
    backend.fault, backend.hangs = UnavailableError("down"), hangs
    status, text = await admin.get("/metrics/resource")
    assert status == 200
    assert "resource_scrape_error 1" in text


async def test_own_metrics_ask_no_backend(backend: MeasuringBackend, admin: Caller) -> None:
    """A few of a kubelet's own series."""
    _, text = await admin.get("/metrics")
    assert 'kubelet_node_name{node="burst"} 1' in text
    assert "kubelet_running_pods 1" in text
    assert 'kubelet_running_containers{container_state="running"} 2' in text
    assert backend.asked == 0
    assert (
        'kubernetes_healthcheck{name="ping",type="healthz"} 1'
        in (await admin.get("/metrics/slis"))[1]
    )


async def test_configz_tells_what_is_true(admin: Caller) -> None:
    """Under a kubelet's key."""
    _, text = await admin.get("/configz")
    assert json.loads(text)["kubeletconfig"]["authentication"]["anonymous"] == {"enabled": False}


async def test_an_unknown_part_is_404(admin: Caller) -> None:
    """There is no such metric."""
    assert (await admin.get("/metrics/nothing"))[0] == 404
