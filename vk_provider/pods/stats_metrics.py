"""PURE. Usage in the text format of Prometheus: ``/metrics/resource`` and ``/metrics/cadvisor``.

metrics-server reads the first: it wants a time stamp at every sample, in milliseconds, of the
moment of measuring, and drops a pod one of whose containers lacks CPU or memory.
Labels stand in the order namespace, pod, container: a known test suite reads them by position.
Fed by :mod:`.usage_history` and the pods that run; feeds ``server.stats``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from vk_provider.pods.reading import mapping, text
from vk_provider.pods.types import Json, PodUID
from vk_provider.pods.usage import ContainerStats
from vk_provider.pods.usage_history import NodeUsage, PodUsage

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]

_NANO = 1_000_000_000


@dataclass(slots=True)
class Family:
    """One metric with all its samples."""

    name: str
    kind: str
    text: str
    samples: list[tuple[Labels, float, datetime | None]] = field(default_factory=list)

    def add(self, labels: Labels, value: float | None, at: datetime | None) -> None:
        """A sample, if there is a figure."""
        if value is not None:
            self.samples.append((labels, value, at))


def exposition(families: Iterable[Family]) -> str:
    """The text; a family without samples is left out."""
    return "".join(line + "\n" for family in families for line in _lines(family))


def resource_families(usage: NodeUsage, pods: Iterable[Json], *, error: bool) -> list[Family]:
    """What metrics-server and the like scrape. ``error``: a backend could not be asked."""
    node = [
        Family("node_cpu_usage_seconds_total", "counter", "Cumulative cpu time of the node's pods"),
        Family("node_memory_working_set_bytes", "gauge", "Working set of the node's pods"),
    ]
    _add(node, {}, usage)
    of_pods = [
        Family("pod_cpu_usage_seconds_total", "counter", "Cumulative cpu time of the pod"),
        Family("pod_memory_working_set_bytes", "gauge", "Current working set of the pod"),
    ]
    of_containers = [
        Family("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time"),
        Family("container_memory_working_set_bytes", "gauge", "Current working set"),
    ]
    started = Family("container_start_time_seconds", "gauge", "Start time since the epoch")
    for labels, pod in _measured(usage, pods):
        _add(of_pods, labels, pod)
        for container in pod.containers:
            named = {**labels, "container": container.name}
            _add(of_containers, named, container)
            started.add(named, _start(container), container.at)
    errors = Family("resource_scrape_error", "gauge", "1 if a backend could not be asked, else 0")
    errors.add({}, int(error), None)
    return [*node, *of_pods, *of_containers, started, errors]


def cadvisor_families(usage: NodeUsage, pods: Iterable[Json]) -> list[Family]:
    """What dashboards of containers ask for, under cAdvisor's names; GPUs too."""
    families = {
        name: Family(name, kind, words)
        for name, kind, words in (
            ("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time"),
            ("container_memory_working_set_bytes", "gauge", "Current working set"),
            ("container_memory_usage_bytes", "gauge", "Current memory usage"),
            ("container_memory_rss", "gauge", "Size of RSS in bytes"),
            ("container_fs_usage_bytes", "gauge", "Bytes used on the container's filesystem"),
            ("container_start_time_seconds", "gauge", "Start time since the epoch"),
            ("container_network_receive_bytes_total", "counter", "Bytes received by the pod"),
            ("container_network_transmit_bytes_total", "counter", "Bytes sent by the pod"),
            ("container_accelerator_duty_cycle", "gauge", "Percent of time the GPU was busy"),
            ("container_accelerator_memory_used_bytes", "gauge", "GPU memory in use"),
        )
    }
    for labels, pod in _measured(usage, pods):
        received, sent = pod.network_received_bytes, pod.network_sent_bytes
        families["container_network_receive_bytes_total"].add(labels, received, pod.at)
        families["container_network_transmit_bytes_total"].add(labels, sent, pod.at)
        for container in pod.containers:
            named = {**labels, "container": container.name}
            for name, value in _cadvisor(container).items():
                families[name].add(named, value, container.at)
            _add_gpus(families, named, container)
    return list(families.values())


def _cadvisor(container: ContainerStats) -> dict[str, float | None]:
    return {
        "container_cpu_usage_seconds_total": _seconds(container.cpu_nanoseconds),
        "container_memory_working_set_bytes": container.memory_working_set_bytes,
        "container_memory_usage_bytes": container.memory_usage_bytes,
        "container_memory_rss": container.memory_rss_bytes,
        "container_fs_usage_bytes": container.filesystem_used_bytes,
        "container_start_time_seconds": _start(container),
    }


def _add_gpus(families: Mapping[str, Family], labels: Labels, container: ContainerStats) -> None:
    for gpu, share in sorted(container.gpu_utilization.items()):
        family = families["container_accelerator_duty_cycle"]
        family.add({**labels, "acc_id": gpu}, round(share * 100), container.at)
    for gpu, used in sorted(container.gpu_memory_used_bytes.items()):
        family = families["container_accelerator_memory_used_bytes"]
        family.add({**labels, "acc_id": gpu}, used, container.at)


def _measured(usage: NodeUsage, pods: Iterable[Json]) -> Iterator[tuple[Labels, PodUsage]]:
    """The pods of which something is known, with their labels."""
    for pod in pods:
        metadata = mapping(pod, "metadata")
        known = usage.pods.get(PodUID(text(metadata, "uid")))
        if known is not None:
            yield {"namespace": text(metadata, "namespace"), "pod": text(metadata, "name")}, known


def _add(
    families: list[Family], labels: Labels, usage: NodeUsage | PodUsage | ContainerStats
) -> None:
    families[0].add(labels, _seconds(usage.cpu_nanoseconds), usage.at)
    families[1].add(labels, usage.memory_working_set_bytes, usage.at)


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / _NANO


def _start(container: ContainerStats) -> float | None:
    return None if container.started_at is None else container.started_at.timestamp()


def _lines(family: Family) -> Iterator[str]:
    if not family.samples:
        return
    yield f"# HELP {family.name} {family.text}"
    yield f"# TYPE {family.name} {family.kind}"
    for labels, value, at in family.samples:
        names = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        braces = f"{{{names}}}" if names else ""
        when = "" if at is None else f" {int(at.timestamp() * 1000)}"
        yield f"{family.name}{braces} {value!r}{when}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
