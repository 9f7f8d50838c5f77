"""Whom the actions on pods speak to, and the form in which they answer.

Fed by ``app`` once; shared by ``loops.pod_actions``, ``loops.instance_calls`` and
``loops.pod_writes``.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from vk_provider.kube.client import KubeClient
from vk_provider.kube.events import EventRecorder
from vk_provider.kube.writer import StatusWriter
from vk_provider.loops.backend import Backend
from vk_provider.loops.kept_logs import KeptLogs
from vk_provider.loops.preparation import Preparer
from vk_provider.pods.slots import Record
from vk_provider.pods.stimuli import Stimulus
from vk_provider.pods.types import Json, PodUID

Post = Callable[[PodUID, Stimulus], None]
Work = Callable[[Record, Any, Post], Coroutine[Any, Any, Stimulus | None]]
"""An action under way; what it returns is its answer. ``Post`` takes news that come before it."""

RETRY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Means:
    """Whom the actions speak to."""

    client: KubeClient
    writer: StatusWriter
    events: EventRecorder
    preparer: Preparer
    backends: Mapping[str, Backend]
    kept_logs: KeptLogs
    made: Callable[[PodUID, Json], None] = lambda _, __: None
    """Told of each instance that was made, and of the pod it was made from."""
