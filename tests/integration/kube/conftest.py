"""A model API server and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.model_apiserver import ModelApiServer
from vk_provider.kube.client import KubeClient


@pytest.fixture
async def api() -> AsyncIterator[ModelApiServer]:
    """A model API server of one test's own."""
    async with ModelApiServer() as server:
        yield server


@pytest.fixture
async def client(api: ModelApiServer) -> AsyncIterator[KubeClient]:
    """A client of that server; closed before it."""
    async with KubeClient(api.identity(), timeout_seconds=5) as opened:
        yield opened
