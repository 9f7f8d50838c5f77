"""One virtual node a module, a namespace a test, all on the session's control plane."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.node_under_test import RUNNING, NodeUnderTest
from tests.e2e.other import Other, other_cluster
from tests.e2e.workloads import Workloads
from tests.rig.control_plane import ControlPlane

_LOG_LINES = 60


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def node(
    control_plane: ControlPlane, request: pytest.FixtureRequest
) -> AsyncIterator[NodeUnderTest]:
    """The module's node, named after it; `NODE_SPEC` in the module is laid over its defaults."""
    name = Path(str(request.module.__file__)).stem.removeprefix("test_").replace("_", "-")
    spec: dict[str, Any] = getattr(request.module, "NODE_SPEC", {})
    async with NodeUnderTest(control_plane, name, spec) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def other() -> AsyncIterator[Other]:
    """The other cluster, with the shipped rights; started for the first test that wants it."""
    async with other_cluster() as found:
        yield found


@pytest.fixture
def workloads(control_plane: ControlPlane, namespace: str) -> Workloads:
    """The test's own namespace, with the words that tests need."""
    return Workloads(control_plane, namespace)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows the last lines of every node that runs."""
    report = yield
    if report.failed:
        for one in RUNNING:
            title = f"log of {one.process}"
            report.sections.append((title, "\n".join(one.log.splitlines()[-_LOG_LINES:])))
    return report
