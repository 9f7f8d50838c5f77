"""PURE. The Summary API of a kubelet (``stats/v1alpha1``): what ``/stats/summary`` answers.

What no backend measures is absent, never zero. Fed by :mod:`.usage_history` and the pods that run;
feeds ``server.stats``.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from vk_provider.pods.container_facts import timestamp
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import Json, PodUID
from vk_provider.pods.usage import ContainerStats
from vk_provider.pods.usage_history import NodeUsage, PodUsage

Stats = dict[str, Any]


def summary(
    node_name: str,
    started_at: datetime,
    usage: NodeUsage,
    pods: Iterable[Json],
    *,
    only_cpu_and_memory: bool = False,
) -> Stats:
    """The whole answer: every pod that runs, with whatever is known of it."""
    node = {"nodeName": node_name, "startTime": timestamp(started_at), **_cpu_and_memory(usage)}
    found = []
    for pod in pods:
        uid = PodUID(text(mapping(pod, "metadata"), "uid"))
        found.append(_pod(pod, usage.pods.get(uid, PodUsage()), only_cpu_and_memory))
    return {"node": node, "pods": found}


def _pod(pod: Json, usage: PodUsage, only_cpu_and_memory: bool) -> Stats:
    metadata = mapping(pod, "metadata")
    measured = {each.name: each for each in usage.containers}
    names = [text(each, "name") for _, each in mappings(mapping(pod, "spec"), "containers")]
    names += [name for name in measured if name not in names]
    rendered: Stats = {
        "podRef": {key: text(metadata, key) for key in ("name", "namespace", "uid")},
        "startTime": text(mapping(pod, "status"), "startTime") or None,
        "containers": [_container(name, measured.get(name), only_cpu_and_memory) for name in names],
        **_cpu_and_memory(usage),
    }
    if usage.at is not None and not only_cpu_and_memory:
        network = _some(rxBytes=usage.network_received_bytes, txBytes=usage.network_sent_bytes)
        if network:
            rendered["network"] = {"time": timestamp(usage.at), "name": "", **network}
    return rendered


def _container(name: str, usage: ContainerStats | None, only_cpu_and_memory: bool) -> Stats:
    if usage is None:
        return {"name": name}
    rendered: Stats = {"name": name, **_cpu_and_memory(usage)}
    if usage.started_at is not None:
        rendered["startTime"] = timestamp(usage.started_at)
    if only_cpu_and_memory:
        return rendered
    if usage.filesystem_used_bytes is not None:
        rendered["rootfs"] = {"time": timestamp(usage.at), "usedBytes": usage.filesystem_used_bytes}
    ids = sorted({*usage.gpu_utilization, *usage.gpu_memory_used_bytes})
    if ids:
        rendered["accelerators"] = [_accelerator(gpu, usage) for gpu in ids]
    return rendered


def _accelerator(gpu: str, usage: ContainerStats) -> Stats:
    share = usage.gpu_utilization.get(gpu)
    return {
        "id": gpu,
        **_some(
            dutyCycle=None if share is None else round(share * 100),
            memoryUsed=usage.gpu_memory_used_bytes.get(gpu),
        ),
    }


def _cpu_and_memory(usage: NodeUsage | PodUsage | ContainerStats) -> Stats:
    """The two blocks that everything has, each only with something in it."""
    if usage.at is None:
        return {}
    blocks = {
        "cpu": _some(
            usageNanoCores=usage.cpu_nanocores, usageCoreNanoSeconds=usage.cpu_nanoseconds
        ),
        "memory": _some(
            usageBytes=usage.memory_usage_bytes,
            workingSetBytes=usage.memory_working_set_bytes,
            rssBytes=usage.memory_rss_bytes,
        ),
    }
    time = timestamp(usage.at)
    return {name: {"time": time, **block} for name, block in blocks.items() if block}


def _some(**figures: int | None) -> dict[str, int]:
    return {name: figure for name, figure in figures.items() if figure is not None}
