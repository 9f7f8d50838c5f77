"""Usage of our instances as the other cluster's metrics API tells it; what it lacks is absent.

Pure. Fed by ``provider`` with PodMetrics; feeds the kubelet's stats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from fractions import Fraction

from vk_provider import quantities
from vk_provider.pods.reading import mapping, mappings, strings, text
from vk_provider.pods.types import Json, PodUID
from vk_provider.streams import ContainerStats, InstanceStats
from vk_provider_kubernetes import stamp as marks

_NANO = Fraction(1, 10**9)


def read_stats(metrics: Iterable[Json]) -> Iterator[InstanceStats]:
    """One entry for each instance that was measured."""
    for each in metrics:
        uid = strings(mapping(each, "metadata"), "labels").get(marks.POD_UID)
        at = _time(text(each, "timestamp"))
        if uid and at is not None:
            containers = [_container(one, at) for _, one in mappings(each, "containers")]
            yield InstanceStats(PodUID(uid), tuple(containers))


def _container(measured: Json, at: datetime) -> ContainerStats:
    usage = mapping(measured, "usage")
    cpu, memory = _amount(usage, "cpu"), _amount(usage, "memory")
    return ContainerStats(
        name=text(measured, "name"),
        at=at,
        cpu_nanocores=None if cpu is None else int(cpu / _NANO),
        memory_working_set_bytes=None if memory is None else int(memory),
    )


def _amount(usage: Json, name: str) -> Fraction | None:
    try:
        return quantities.parse(usage[name]) if name in usage else None
    except ValueError:
        return None


def _time(words: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(words)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
