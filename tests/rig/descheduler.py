"""The real descheduler on a bed, with a policy as `deploy/` ships it.

async with descheduler(bed, policy, interval_seconds=5) as metrics_url: ...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.rig import builds
from tests.rig.access import ADMIN_GROUP
from tests.rig.control_plane import ControlPlane

NAME = "descheduler"


@asynccontextmanager
async def descheduler(
    bed: ControlPlane,
    policy: Mapping[str, Any],
    *,
    interval_seconds: float,
    name: str = NAME,
    kubeconfig: Path | None = None,
    dry_run: bool = False,
) -> AsyncIterator[str]:
    """Run it until left; gives the URL of its metrics (HTTPS, a client certificate of admin's).

    Without a kubeconfig it is admin: give that of its own ServiceAccount to test its rights.
    """
    program = await asyncio.to_thread(builds.binary, "descheduler")
    file = bed.folder / f"{name}-policy.yaml"
    file.write_text(yaml.safe_dump(dict(policy), sort_keys=False))
    identity = kubeconfig or bed.kubeconfig_for_user("descheduler", [ADMIN_GROUP])
    port = bed.free_port()
    pair = bed.serving_pair("127.0.0.1", name=name)
    await bed.start(
        name,
        [
            program,
            f"--kubeconfig={identity}",
            f"--policy-config-file={file}",
            f"--descheduling-interval={interval_seconds:g}s",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={pair.certificate}",
            f"--tls-private-key-file={pair.key}",
            "--leader-elect=false",
            "-v=3",
            *(["--dry-run"] if dry_run else []),
        ],
    )
    try:
        yield f"https://127.0.0.1:{port}/metrics"
    finally:
        await bed.stop(name)
