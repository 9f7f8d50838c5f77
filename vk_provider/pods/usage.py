"""What a backend measured of one instance: values of the seam, rendered by :mod:`.stats`.

Fed by a provider's ``read_stats``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from vk_provider.pods.types import PodUID


@dataclass(frozen=True, slots=True)
class ContainerStats:
    """Usage of one container as the backend measured it. What it does not report is None.

    ``cpu_nanoseconds`` is a monotone counter since the container's start; memory in bytes.
    """

    name: str
    at: datetime
    started_at: datetime | None = None
    cpu_nanoseconds: int | None = None
    cpu_nanocores: int | None = None
    memory_working_set_bytes: int | None = None
    memory_usage_bytes: int | None = None
    memory_rss_bytes: int | None = None
    filesystem_used_bytes: int | None = None
    gpu_utilization: Mapping[str, float] = field(default_factory=dict)
    """GPU id -> share of time busy, 0 to 1."""
    gpu_memory_used_bytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InstanceStats:
    """Usage of one instance."""

    pod_uid: PodUID
    containers: tuple[ContainerStats, ...]
    network_received_bytes: int | None = None
    network_sent_bytes: int | None = None
