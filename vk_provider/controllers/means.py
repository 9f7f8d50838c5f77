"""What every controller of the bursting side is built from.

Fed by ``app.bursting`` once per term of leadership; handed to each controller, which is a class
with ``async def run(self) -> None`` (until cancelled).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vk_provider.kube.client import KubeClient
from vk_provider.kube.events import EventRecorder
from vk_provider.loops.clock import Clock
from vk_provider.metrics import Metrics


@dataclass(frozen=True, slots=True)
class ControllerMeans:
    """Whom a controller speaks to. ``may_act`` is False as soon as another replica may lead:
    nothing is then written any more. ``jitter`` gives numbers in [0, 1)."""

    client: KubeClient
    clock: Clock
    metrics: Metrics
    events: EventRecorder
    may_act: Callable[[], bool]
    jitter: Callable[[], float]
