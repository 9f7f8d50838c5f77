"""``python -m tests.pod_api``: ask a real API server of each supported version, and keep the union.

Each version is built first where it is not there yet.
"""

import asyncio
import json
import os
from pathlib import Path

from tests.pod_api.types import VERSIONS, Types, pod_types, united
from tests.rig.control_plane import ControlPlane

SNAPSHOT = Path(__file__).parents[2] / "vk_provider" / "testing" / "pod_api.json"


async def served(version: str) -> Types:
    """What one version serves."""
    os.environ["KUBE_VERSION"] = version
    async with ControlPlane() as bed:
        return pod_types(await bed.get_json("/openapi/v3/api/v1"))


async def main() -> None:
    """One after the other."""
    found = {version: await served(version) for version in VERSIONS}
    SNAPSHOT.write_text(json.dumps(united(found), indent=1, sort_keys=True))


asyncio.run(main())
