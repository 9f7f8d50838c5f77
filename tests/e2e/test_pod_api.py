"""The Pod API of the API server that runs here is one that every field's rule was made for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pod_api.types import pod_types, unknown
from tests.rig.control_plane import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="session")

SNAPSHOT = Path(__file__).parents[2] / "vk_provider" / "testing" / "pod_api.json"


async def test_this_version_has_no_field_that_nobody_thought_about(
    control_plane: ControlPlane,
) -> None:
    """Run with a newer KUBE_VERSION this names what is new: give it a rule in every provider."""
    served = pod_types(await control_plane.get_json("/openapi/v3/api/v1"))
    known = json.loads(SNAPSHOT.read_text())["types"]

    assert list(unknown(served, known)) == []
