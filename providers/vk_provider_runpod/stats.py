"""What instances use, in Kubernetes' units: out of RunPod's list, and out of the containers.

RunPod measures in per cent. Of a GPU that is what Kubernetes shows, too; of memory it can be told
in bytes where the instance's size is known (CPU pods). Processor time is not told at all, neither
as a counter nor of how many cores: only a container that lets us in has that. What nobody has
measured is left out.
Pure. Fed by ``streams`` with one list and what was measured; feeds the core's stats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from vk_provider.pods.reading import mapping, mappings, number, text
from vk_provider.streams import ContainerStats, InstanceStats
from vk_provider_runpod.cgroups import Usage
from vk_provider_runpod.stamp import Mark, read_mark

_GB = 10**9
_PER_CENT = 100


def running(
    pods: Sequence[Mapping[str, Any]], cluster_id: str
) -> Mapping[str, tuple[Mark, Mapping[str, Any]]]:
    """The running instances of our cluster, by id."""
    found = {}
    for pod in pods:
        mark = read_mark(pod)
        # A stopped pod shows its last runtime for a while.
        runs = text(pod, "status") == "RUNNING" and mapping(pod, "runtime")
        if mark is not None and mark.stamp.cluster_id == cluster_id and runs:
            found[text(pod, "id")] = (mark, pod)
    return found


def stats_of(
    instances: Mapping[str, tuple[Mark, Mapping[str, Any]]],
    measured: Mapping[str, Usage],
    now: datetime,
) -> tuple[InstanceStats, ...]:
    """Of these instances; ``now`` is when RunPod answered."""
    return tuple(
        InstanceStats(
            mark.stamp.pod_uid, (_container(mark.container, pod, measured.get(key), now),)
        )
        for key, (mark, pod) in instances.items()
    )


def _container(
    name: str, pod: Mapping[str, Any], usage: Usage | None, now: datetime
) -> ContainerStats:
    usage = usage or Usage()
    runtime = mapping(pod, "runtime")
    gpus = {str(index): entry for index, entry in mappings(runtime, "gpus")}
    shares = {index: _share(entry, "util") for index, entry in gpus.items()}
    told = _memory(pod) if usage.memory_bytes is None else None
    return ContainerStats(
        name=name,
        at=now,
        cpu_nanoseconds=usage.cpu_nanoseconds,
        memory_working_set_bytes=usage.working_set_bytes if told is None else told,
        memory_usage_bytes=usage.memory_bytes if told is None else told,
        gpu_utilization={index: share for index, share in shares.items() if share is not None},
        gpu_memory_used_bytes=dict(usage.gpu_memory_bytes),
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
