"""A simulator in a thread of its own, for tools that block, and one in the test's loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import pytest
from vk_provider_runpod import factory
from vk_provider_runpod.provider import RunPodProvider
from vk_provider_runpod.simulator import Options, Simulator, running

from vk_provider.provider import ProviderContext, ReadClaim
from vk_provider.testing.builders import CLUSTER_ID, NODE_NAME

API_KEY = "rpa_integration_key_0123456789"


@contextmanager
def in_thread(options: Options) -> Iterator[Simulator]:
    """Serve from another thread while the block runs."""
    started: list[Simulator] = []
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        async with running(options) as simulator:
            started.append(simulator)
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield started[0]
    finally:
        stop.set()
        thread.join(10)


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    """A simulator whose clock stands still and whose containers are silent after two lines."""
    options = Options(speed=0, pull_seconds=5, log_every_seconds=0, api_key=API_KEY)
    async with running(options) as found:
        yield found


@pytest.fixture
def make_provider(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., RunPodProvider]:
    """Providers of one account; further keyword arguments are keys of their configuration."""
    monkeypatch.setenv("RUNPOD_API_KEY", API_KEY)

    def make(
        node_name: str = NODE_NAME,
        read_claim: ReadClaim | None = None,
        may_act: Callable[[], bool] = lambda: True,
        **config: object,
    ) -> RunPodProvider:
        block = {
            "apiKey": {"env": "RUNPOD_API_KEY"},
            "baseUrl": simulator.url,
            "gpuTypes": ["NVIDIA L40S", "NVIDIA L4"],
            **config,
        }
        names = CLUSTER_ID, node_name, "runpod", "config", "test/1"
        return factory(block, ProviderContext(*names, read_claim=read_claim, may_act=may_act))

    return make


@pytest.fixture
async def provider(
    make_provider: Callable[..., RunPodProvider],
) -> AsyncIterator[RunPodProvider]:
    """A provider that was entered."""
    async with make_provider() as found:
        yield found
