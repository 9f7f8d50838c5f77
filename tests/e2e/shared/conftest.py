"""One shared cluster for all tests of this folder; each leaves it as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.e2e.controllers import install
from tests.e2e.shared.cluster import SharedCluster, shared_cluster
from tests.e2e.workloads import Workloads


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def cluster() -> AsyncIterator[SharedCluster]:
    """Kueue, Prometheus and four home nodes, with the shipped identity installed."""
    async with shared_cluster() as running:
        running.kubeconfig = await install(running.bed, ["bursting", "quota-bridge"])
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def jobs(cluster: SharedCluster) -> Workloads:
    """The namespace of the training queues."""
    return Workloads(cluster.bed, "default")
