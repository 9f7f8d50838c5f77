"""The term of the bursting side: it leads, it ends, and it outlives a bug of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.model_apiserver import ModelApiServer
from vk_provider.app.bursting import Bursting
from vk_provider.bursting import names
from vk_provider.metrics import Metrics
from vk_provider.settings import LeaderElectionSettings
from vk_provider.settings_bursting import BurstingSettings
from vk_provider.settings_bursting_prometheus import PrometheusSettings

QUICK = LeaderElectionSettings("vk-provider-bursting", True, "vk-provider", 2.0, 1.0, 0.1)
NODE = {
    "metadata": {
        "name": "burst",
        "labels": {"type": "virtual-kubelet"},
        "annotations": {names.GATE_MANAGED: "true"},
    },
    "spec": {"taints": []},
    "status": {},
}


@asynccontextmanager
async def running(
    settings: BurstingSettings, kind: type[Bursting] = Bursting
) -> AsyncIterator[tuple[ModelApiServer, Metrics, asyncio.Event]]:
    """The bursting side over an API server; stopped at the end."""
    async with ModelApiServer() as api:
        api.store.put("nodes", NODE)
        metrics, stop = Metrics(), asyncio.Event()
        side = kind(settings, api.identity(), "vk-provider", metrics)
        task = asyncio.ensure_future(side.run(stop))
        try:
            yield api, metrics, stop
        finally:
            stop.set()
            await task
            assert side.unready() is None


def gate(api: ModelApiServer) -> list[str]:
    """The values of the gate's taint."""
    taints = api.store.objects["nodes", "", "burst"]["spec"]["taints"]
    return [taint["value"] for taint in taints if taint["key"] == names.GATE_TAINT]


def leads(metrics: Metrics) -> float | None:
    """Whether this process leads."""
    return metrics.registry.get_sample_value("vk_provider_bursting_leader")


async def test_the_leader_moves_the_gates_until_it_is_stopped() -> None:
    """With a second signal that nobody answers."""
    settings = BurstingSettings(
        leader_election=QUICK, prometheus=PrometheusSettings("http://127.0.0.1:1", every=0.1)
    )
    async with running(settings) as (api, metrics, stop):
        await eventually(lambda: gate(api) == ["hold"], "the gate is held")
        assert leads(metrics) == 1
        stop.set()
        await eventually(lambda: leads(metrics) is None or leads(metrics) == 0, "it stopped")


class Broken(Bursting):
    """A bug in the first term."""

    terms = 0

    async def _work(self, *args: Any) -> None:
        Broken.terms += 1
        if Broken.terms == 1:
            raise ZeroDivisionError("a bug")
        await super()._work(*args)


async def test_a_bug_of_a_controller_ends_its_term_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is counted and told; the next term goes on."""
    settings = BurstingSettings(leader_election=QUICK)
    async with running(settings, Broken) as (api, metrics, _):
        await eventually(lambda: gate(api) == ["hold"], "the gate is held in the second term")
        count = metrics.registry.get_sample_value(
            "vk_provider_internal_errors_total", {"node": "", "action": "bursting"}
        )
    assert count == 1
    assert "a controller failed; the nodes go on" in caplog.text


async def test_a_lease_that_may_not_be_used_is_told() -> None:
    """In readiness, and nothing is written."""
    async with ModelApiServer() as api:
        api.lie(403, path="/leases", times=10_000)
        stop = asyncio.Event()
        settings = BurstingSettings(leader_election=QUICK)
        side = Bursting(settings, api.identity(), "vk-provider", Metrics())
        assert side.unready() is None
        task = asyncio.ensure_future(side.run(stop))
        await eventually(lambda: "may not be used" in (side.unready() or ""), "it is told")
        stop.set()
        await task
