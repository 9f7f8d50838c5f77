"""What a node at rest asks of its backend: one list a tick, however many pods there are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

from tests.integration.loops.bench import pod, settings
from tests.integration.loops.memory_api import MemoryApi, MemoryClient
from tests.integration.steady.backends import BACKENDS, CLUSTER, NODE, Calls, Service
from tests.support.loop_clock import LoopClock
from vk_provider.app.assembly import Assembly, Whereabouts, assemble
from vk_provider.loops.shell import Shell
from vk_provider.metrics import Metrics
from vk_provider.pods.hints import render_placement
from vk_provider.pods.names import PLACEMENT
from vk_provider.pods.slots import Existence
from vk_provider.pods.types import Placement, Stamp
from vk_provider.settings import BackendSettings
from vk_provider.testing.builders import uid_of

PODS = 500
TICK_SECONDS = 0.5
TICKS = 8
BACKEND = "backend"
DEADLINE_SECONDS = 120.0


def stamps() -> list[Stamp]:
    """Whose the instances are."""
    return [
        Stamp(CLUSTER, NODE, "default", f"pod-{number}", uid_of(f"pod-{number}"))
        for number in range(PODS)
    ]


def home() -> MemoryApi:
    """An API server whose pods were all given an instance before."""
    api = MemoryApi()
    for stamp in stamps():
        placed = Placement(stamp.pod_uid, BACKEND, "default")
        notes = {"annotations": {PLACEMENT: render_placement(placed)}}
        api.store.put("pods", pod(stamp.pod_name, metadata=notes))
    return api


@asynccontextmanager
async def node(service: Service, api: MemoryApi) -> AsyncIterator[Assembly]:
    """All loops of a node that begins, in real time."""
    base = settings(tickSeconds=TICK_SECONDS)
    backend = BackendSettings(BACKEND, service.provider, dict(service.config))
    given = replace(base, backends=(backend,), capacity={**base.capacity, "pods": "600"})
    shell = Shell(LoopClock(datetime.now(UTC)), Metrics(), node=NODE)
    where = Whereabouts(CLUSTER, "10.0.0.1")
    async with AsyncExitStack() as stack:
        running = await assemble(given, MemoryClient(api), shell, where, stack)
        service.adopt(running.backends[BACKEND].provider)
        tasks = [asyncio.ensure_future(work) for _, work in running.loops()]
        try:
            yield running
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await shell.drain(0)
            running.close()


@pytest.mark.parametrize("name", BACKENDS)
async def test_500_pods_cost_one_list_a_tick(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing else: no call for a pod, neither there nor at home."""
    api = home()
    async with BACKENDS[name](stamps(), monkeypatch) as service, node(service, api) as running:
        await eventually(partial(_all_run, running, api), "all pods to run")
        await eventually(partial(_is_settled, service), "what is done once after a start")
        await _until_at_rest(service, api)

        before, at_home = service.calls(), len(api.calls)
        await asyncio.sleep(TICKS * TICK_SECONDS)
        asked = service.calls() - before

        assert set(asked) == {service.lists}, asked
        assert asked[service.lists] <= (TICKS + 2) * service.requests_a_list
        assert api.calls[at_home:] == []


async def eventually(condition: Callable[[], bool], what: str) -> None:
    """Rarely asked: there are many pods to look at."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110  # nobody tells when
            await asyncio.sleep(0.2)


def _all_run(running: Assembly, api: MemoryApi) -> bool:
    records = running.workers.records.values()
    present = sum(record.exists is Existence.PRESENT for record in records)
    return present == PODS and api.phases()["Running"] == PODS


def _is_settled(service: Service) -> bool:
    calls = service.calls()
    return all(calls[name] >= times for name, times in service.once.items())


async def _until_at_rest(service: Service, api: MemoryApi) -> None:
    """Until nothing but lists comes any more."""

    def others() -> tuple[Calls, int]:
        calls = service.calls()
        del calls[service.lists]
        return calls, len(api.calls)

    async with asyncio.timeout(DEADLINE_SECONDS):
        seen = others()
        while True:
            await asyncio.sleep(2 * TICK_SECONDS)
            if others() == seen:
                return
            seen = others()
