"""pytest fixtures of the test bed: `pytest_plugins = ["tests.rig.plugin"]`.

The bed is one per session, so tests that use it run in the session's event loop:
`pytestmark = pytest.mark.asyncio(loop_scope="session")`.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator
from contextlib import nullcontext

import pytest
import pytest_asyncio

from tests.rig.builds import build_all
from tests.rig.control_plane import ControlPlane
from tests.rig.recipes import CONTROL_PLANE


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before the first test: a first build takes longer than a test may."""
    bed = [*CONTROL_PLANE, "kwok"] if any(map(_needs_bed, session.items)) else []
    wanted = [*bed, *_others(session.items)]
    if session.config.option.collectonly or not wanted:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        build_all(wanted)


def _others(items: list[pytest.Item]) -> list[str]:
    """The programs that only some modules need: they import what runs them, or name PROGRAMS."""
    modules = {getattr(item, "module", None) for item in items}
    named = {program for each in modules for program in getattr(each, "PROGRAMS", ())}
    ran = {name for name in ("kueue", "descheduler") if any(hasattr(m, name) for m in modules)}
    if any(hasattr(each, "metrics_server") for each in modules):
        ran.add("metrics-server")
    return sorted(named | ran)


def _needs_bed(item: pytest.Item) -> bool:
    module = getattr(item, "module", None)
    return "control_plane" in getattr(item, "fixturenames", ()) or hasattr(module, "ControlPlane")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def control_plane() -> AsyncIterator[ControlPlane]:
    """A control plane shared by the whole session; leave cluster-wide things as they were."""
    async with ControlPlane() as bed:
        yield bed


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(
    control_plane: ControlPlane, request: pytest.FixtureRequest
) -> AsyncIterator[str]:
    """A namespace of the test's own, ready for pods; its removal is not waited for."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    name = f"{words[:40].strip('-')}-{uuid.uuid4().hex[:6]}"
    await control_plane.create_namespace(name)
    yield name
    await control_plane.request_json("DELETE", f"/api/v1/namespaces/{name}")
