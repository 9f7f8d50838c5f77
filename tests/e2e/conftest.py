"""One virtual node a module, a namespace a test, all on the session's control plane."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.workloads import Workloads
from tests.rig.control_plane import ControlPlane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def node(
    control_plane: ControlPlane, request: pytest.FixtureRequest
) -> AsyncIterator[NodeUnderTest]:
    """The module's node, named after it; `NODE_SPEC` in the module is laid over its defaults."""
    name = Path(str(request.module.__file__)).stem.removeprefix("test_").replace("_", "-")
    spec: dict[str, Any] = getattr(request.module, "NODE_SPEC", {})
    async with NodeUnderTest(control_plane, name, spec) as running:
        yield running


@pytest.fixture
def workloads(control_plane: ControlPlane, namespace: str) -> Workloads:
    """The test's own namespace, with the words that tests need."""
    return Workloads(control_plane, namespace)
