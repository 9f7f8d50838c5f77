"""A simulator in the test's loop, and providers of one workspace that reach it through the SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from vk_provider_modal import factory
from vk_provider_modal.provider import ModalProvider
from vk_provider_modal.simulator import Options, Simulator, running

from vk_provider.provider import ProviderContext
from vk_provider.testing.builders import CLUSTER_ID, NODE_NAME

TOKENS = ("ak-integration", "as-integration-secret")
Make = Callable[..., ModalProvider]


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    """A simulator whose clock stands still an hour ago, and that accepts one pair of tokens."""
    options = Options(
        speed=0,
        behind_seconds=3600,
        start_seconds=0,
        log_every_seconds=0,
        tokens=TOKENS,
        honours_idempotency_keys=False,
        runs_exec=True,
    )
    async with running(options) as found:
        yield found


@pytest.fixture
def make_provider(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Providers of one workspace; keyword arguments are keys of their configuration."""
    monkeypatch.setenv("MODAL_ID", TOKENS[0])
    monkeypatch.setenv("MODAL_SECRET", TOKENS[1])

    def make(node_name: str = NODE_NAME, **config: object) -> ModalProvider:
        block = {
            "tokenId": {"env": "MODAL_ID"},
            "tokenSecret": {"env": "MODAL_SECRET"},
            "baseUrl": simulator.url,
            "gpuTypes": ["L40S", "H100"],
            "requestTimeoutSeconds": 20,
            "capacityWaitSeconds": 1,
            "listLagSeconds": 0,
            **config,
        }
        return factory(block, ProviderContext(CLUSTER_ID, node_name, "modal", "config", "test/1"))

    return make


@pytest.fixture
async def hasty_provider(make_provider: Make) -> AsyncIterator[ModalProvider]:
    """A provider that was entered, and that waits a few seconds for an answer at most."""
    async with make_provider(requestTimeoutSeconds=4) as found:
        yield found


@pytest.fixture
async def provider(make_provider: Make) -> AsyncIterator[ModalProvider]:
    """A provider that was entered."""
    async with make_provider() as found:
        yield found
