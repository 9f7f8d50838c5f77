"""The usage that RunPod's list shows, as far as it can be told in Kubernetes' units.

RunPod measures in per cent. Of a GPU that is what Kubernetes shows, too; of memory it can be told
in bytes where the instance's size is known (CPU pods). Processor time is not told at all, neither
as a counter nor of how many cores, and is left out rather than made up.
Pure. Fed by ``streams`` with one list; feeds the core's stats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from vk_provider.pods.reading import mapping, mappings, number, text
from vk_provider.streams import ContainerStats, InstanceStats
from vk_provider_runpod.stamp import read_mark

_GB = 10**9
_PER_CENT = 100


def stats_of(
    pods: Sequence[Mapping[str, Any]], cluster_id: str, now: datetime
) -> tuple[InstanceStats, ...]:
    """Of all running instances of our cluster; ``now`` is when RunPod answered."""
    return tuple(_all(pods, cluster_id, now))


def _all(
    pods: Sequence[Mapping[str, Any]], cluster_id: str, now: datetime
) -> Iterator[InstanceStats]:
    for pod in pods:
        mark, runtime = read_mark(pod), mapping(pod, "runtime")
        if mark is None or mark.stamp.cluster_id != cluster_id:
            continue
        # A stopped pod shows its last runtime for a while.
        if text(pod, "status") == "RUNNING" and runtime:
            yield InstanceStats(mark.stamp.pod_uid, (_container(pod, mark.container, now),))


def _container(pod: Mapping[str, Any], name: str, now: datetime) -> ContainerStats:
    runtime = mapping(pod, "runtime")
    gpus = {str(index): entry for index, entry in mappings(runtime, "gpus")}
    shares = {index: _share(entry, "util") for index, entry in gpus.items()}
    memory = _memory(pod)
    return ContainerStats(
        name=name,
        at=now,
        memory_working_set_bytes=memory,
        memory_usage_bytes=memory,
        gpu_utilization={index: share for index, share in shares.items() if share is not None},
    )


def _memory(pod: Mapping[str, Any]) -> int | None:
    size = number(mapping(pod, "cpu"), "memory")
    share = _share(mapping(mapping(pod, "runtime"), "memory"), "util")
    return None if size is None or share is None else round(size * _GB * share)


def _share(entry: Mapping[str, Any], key: str) -> float | None:
    value = entry.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return min(1.0, max(0.0, value / _PER_CENT))
