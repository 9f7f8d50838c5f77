"""What a complete list of one backend counts: instances, money, strangers of our own cluster.

Fed by ``loops.relist``; feeds the metrics and, through ``app.node_view``, ``describe node``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from vk_provider.loops.shell import Shell
from vk_provider.pods.types import InstancePhase, Observation

logger = logging.getLogger(__name__)


class Census:
    """The figures of the last complete list."""

    def __init__(self, cluster_id: str, node_name: str, backend: str, shell: Shell) -> None:
        self.instances = 0
        self.usd_per_hour = 0.0
        self._cluster_id = cluster_id
        self._node_name = node_name
        self._backend = backend
        self._metrics = shell.metrics
        self._elsewhere: set[str] = set()
        self._garbled: frozenset[str] = frozenset()
        self._strays: frozenset[str] = frozenset()

    def is_ours(self, seen: Observation) -> bool:
        """Whether an instance carries our cluster's and our node's stamp."""
        stamp = seen.stamp
        return stamp.cluster_id == self._cluster_id and stamp.node_name == self._node_name

    def take(
        self, seen: Sequence[Observation], ours: Sequence[Observation], unconfirmed: int
    ) -> bool:
        """Count a complete list; True if what a person sees of it has changed."""
        labels = (self._node_name, self._backend)
        before = (self.instances, self.usd_per_hour)
        self.usd_per_hour = round(sum(each.usd_per_hour or 0.0 for each in ours), 6)
        self.instances = len(ours)
        phases = Counter(each.phase for each in ours)
        for phase in InstancePhase:
            self._metrics.instances.labels(*labels, str(phase)).set(phases[phase])
        self._metrics.price_usd_per_hour.labels(*labels).set(self.usd_per_hour)
        self._metrics.unconfirmed_deletions.labels(*labels).set(unconfirmed)
        self._tell_of_garbled(ours)
        self._tell_of_strays(seen)
        self._tell_of_others(seen)
        return before != (self.instances, self.usd_per_hour)

    def _tell_of_garbled(self, ours: Sequence[Observation]) -> None:
        garbled = frozenset(each.ref.id for each in ours if each.phase is InstancePhase.UNKNOWN)
        if garbled:
            counter = self._metrics.garbled_observations
            counter.labels(self._node_name, self._backend).inc(len(garbled))
        if garbled - self._garbled:
            ids = ", ".join(sorted(garbled - self._garbled))
            logger.warning("backend %s: unreadable state of %s", self._backend, ids)
        self._garbled = garbled

    def _tell_of_strays(self, seen: Sequence[Observation]) -> None:
        strays = frozenset(each.ref.id for each in seen if each.stamp.is_stray)
        if strays:
            counter = self._metrics.garbled_observations
            counter.labels(self._node_name, self._backend).inc(len(strays))
        for stray in sorted(strays - self._strays):
            logger.warning(
                "backend %s: instance %s is this cluster's, but lost the mark that says which "
                "pod's: while it is there, pods whose instance is not known are not made anew; "
                "end it by hand",
                self._backend, stray,
            )  # fmt: skip
        self._strays = strays

    def _tell_of_others(self, seen: Sequence[Observation]) -> None:
        """Instances of other nodes of our cluster are theirs: counted, never touched."""
        found = Counter(
            each.stamp.node_name
            for each in seen
            if each.stamp.cluster_id == self._cluster_id
            and not (self.is_ours(each) or each.stamp.is_stray)
        )
        gauge = self._metrics.instances_elsewhere
        for node in self._elsewhere - found.keys():
            gauge.remove(self._node_name, self._backend, node)
        for node in found:
            gauge.labels(self._node_name, self._backend, node).set(found[node])
            if node not in self._elsewhere:
                logger.info(
                    "backend %s: %d instances belong to node %s of this cluster; it must end them",
                    self._backend, found[node], node,
                )  # fmt: skip
        self._elsewhere = set(found)
