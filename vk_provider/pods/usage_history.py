"""PURE. From what backends measure, counters that never fall: of containers, pods and the node.

A backend may count, or only say how busy a container is: then its busy time is added up. The node's
counter is that of all pods that ever were here, since a scraper takes a fall for a restart.
Fed by ``server.usage`` with every measurement; feeds :mod:`.stats` and :mod:`.stats_metrics`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from vk_provider.pods.types import PodUID
from vk_provider.pods.usage import ContainerStats, InstanceStats


@dataclass(frozen=True, slots=True)
class PodUsage:
    """One pod. The counters of its containers are resolved; a sum is None unless every container
    has the figure."""

    at: datetime | None = None
    containers: tuple[ContainerStats, ...] = ()
    cpu_nanoseconds: int | None = None
    cpu_nanocores: int | None = None
    memory_working_set_bytes: int | None = None
    memory_usage_bytes: int | None = None
    memory_rss_bytes: int | None = None
    network_received_bytes: int | None = None
    network_sent_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """The node: the sums over the pods that have the figure. ``pods`` by UID."""

    at: datetime | None = None
    pods: dict[PodUID, PodUsage] = field(default_factory=dict)
    cpu_nanoseconds: int | None = None
    cpu_nanocores: int | None = None
    memory_working_set_bytes: int | None = None
    memory_usage_bytes: int | None = None
    memory_rss_bytes: int | None = None


@dataclass(slots=True)
class _Counter:
    """What a container had used when it was last looked at."""

    at: datetime
    started_at: datetime | None
    used: int


class UsageHistory:
    """Remembers the last counters of the pods that are here."""

    def __init__(self) -> None:
        self._containers: dict[PodUID, dict[str, _Counter]] = {}
        self._pods: dict[PodUID, int] = {}
        self._node = 0

    def absorb(self, measured: Iterable[InstanceStats], here: Collection[PodUID]) -> NodeUsage:
        """Take measurements of the pods that are ``here``; those of others are not ours to show."""
        for gone in set(self._pods).difference(here):
            self._containers.pop(gone, None)
            del self._pods[gone]
        pods = {each.pod_uid: self._pod(each) for each in measured if each.pod_uid in here}
        usages = tuple(pods.values())
        counted = _present(usage.cpu_nanoseconds for usage in usages)
        return NodeUsage(
            at=max(_present(usage.at for usage in usages), default=None),
            pods=pods,
            cpu_nanoseconds=self._node if counted else None,
            cpu_nanocores=_total(usage.cpu_nanocores for usage in usages),
            memory_working_set_bytes=_total(usage.memory_working_set_bytes for usage in usages),
            memory_usage_bytes=_total(usage.memory_usage_bytes for usage in usages),
            memory_rss_bytes=_total(usage.memory_rss_bytes for usage in usages),
        )

    def _pod(self, measured: InstanceStats) -> PodUsage:
        uid = measured.pod_uid
        self._pods.setdefault(uid, 0)
        containers = tuple(self._container(uid, each) for each in measured.containers)
        counted = _whole([each.cpu_nanoseconds for each in containers]) is not None
        return PodUsage(
            at=max((each.at for each in containers), default=None),
            containers=containers,
            cpu_nanoseconds=self._pods[uid] if counted else None,
            cpu_nanocores=_whole([each.cpu_nanocores for each in containers]),
            memory_working_set_bytes=_whole([c.memory_working_set_bytes for c in containers]),
            memory_usage_bytes=_whole([each.memory_usage_bytes for each in containers]),
            memory_rss_bytes=_whole([each.memory_rss_bytes for each in containers]),
            network_received_bytes=measured.network_received_bytes,
            network_sent_bytes=measured.network_sent_bytes,
        )

    def _container(self, uid: PodUID, measured: ContainerStats) -> ContainerStats:
        """The same with a counter that never falls while the container lives."""
        known = self._containers.setdefault(uid, {})
        before = known.get(measured.name)
        if before is not None and before.started_at != measured.started_at:
            before = None
        used = _used(measured, before)
        if used is None:
            return measured
        if before is not None and measured.at < before.at:
            measured = replace(measured, at=before.at)
        grown = used - (before.used if before is not None else 0)
        self._pods[uid] += grown
        self._node += grown
        known[measured.name] = _Counter(measured.at, measured.started_at, used)
        return replace(measured, cpu_nanoseconds=used, cpu_nanocores=_rate(measured, before, grown))


def _used(measured: ContainerStats, before: _Counter | None) -> int | None:
    """The counter: the backend's own, else its busy share added up over time."""
    used = before.used if before is not None else 0
    if measured.cpu_nanoseconds is not None:
        return max(used, measured.cpu_nanoseconds)
    if measured.cpu_nanocores is None:
        return None
    passed = _seconds(before, measured.at)
    return used + int(measured.cpu_nanocores * passed)


def _rate(measured: ContainerStats, before: _Counter | None, grown: int) -> int | None:
    """The backend's own figure, else what was used since the last look."""
    passed = _seconds(before, measured.at)
    if measured.cpu_nanocores is not None or passed == 0:
        return measured.cpu_nanocores
    return int(grown / passed)


def _seconds(before: _Counter | None, at: datetime) -> float:
    return 0.0 if before is None else max(0.0, (at - before.at).total_seconds())


def _present(values: Iterable[datetime | int | None]) -> list[Any]:
    return [value for value in values if value is not None]


def _total(values: Iterable[int | None]) -> int | None:
    """The sum of the figures that there are."""
    found = _present(values)
    return sum(found) if found else None


def _whole(values: Sequence[int | None]) -> int | None:
    """The sum, if no figure is missing."""
    found = _present(values)
    return sum(found) if found and len(found) == len(values) else None
