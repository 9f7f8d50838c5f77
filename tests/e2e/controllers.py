"""Controllers of the bursting side in the test's own process, with the identity that is shipped.

async with means_of(bed, kubeconfig) as means, running(Controller(means).run()):
    ...

Feeds the end-to-end tests of single controllers; the whole process is run by `node_under_test`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from tests.rig import identity
from tests.rig.control_plane import ControlPlane
from tests.support.eventually import running
from vk_provider.controllers.means import ControllerMeans
from vk_provider.kube.client import KubeClient
from vk_provider.kube.credentials import load_credentials
from vk_provider.kube.events import EventRecorder
from vk_provider.loops.clock import SystemClock
from vk_provider.metrics import Metrics


@dataclass
class ShiftedClock(SystemClock):
    """The real time, and then some."""

    shift: timedelta = field(default_factory=timedelta)

    def now(self) -> datetime:
        """The calendar time, shifted."""
        return datetime.now(UTC) + self.shift


@asynccontextmanager
async def means_of(
    bed: ControlPlane, kubeconfig: Path, clock: SystemClock | None = None
) -> AsyncIterator[ControllerMeans]:
    """What a controller is built from, on a real API server."""
    credentials = await load_credentials(kubeconfig)
    async with KubeClient(credentials) as client:
        recorder = EventRecorder(client, "controllers-under-test")
        async with running(recorder.run()):
            yield ControllerMeans(
                client, clock or SystemClock(), Metrics(), recorder, lambda: True, lambda: 0.5
            )


async def install(
    bed: ControlPlane, components: Sequence[str], kinds: Collection[str] = ()
) -> Path:
    """Apply the shipped identity with some components; return its kubeconfig."""
    overlay = _overlay(bed.folder, components)
    return await identity.install(bed, overlay, kinds=identity.IDENTITY_KINDS | set(kinds))


def _overlay(folder: Path, components: Sequence[str]) -> Path:
    """An overlay as a user writes it; kustomize wants relative paths."""
    overlay = folder / f"overlay-{'-'.join(components)}"
    overlay.mkdir(exist_ok=True)
    base = Path(os.path.relpath(identity.DEPLOY, overlay))
    document = {
        "resources": [str(base)],
        "components": [str(base / "components" / name) for name in components],
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(document))
    return overlay
