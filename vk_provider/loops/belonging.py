"""Which of the instances a backend shows are this backend's to report.

Two backends of a node may share one account (two price classes of one cloud): each one's list then
shows what the other one made. Where ids are global the same id is the same instance, so it belongs
to the backend that its pod's record names, and is no double. Fed by lists and pushes.
"""

from __future__ import annotations

from collections.abc import Mapping

from vk_provider.loops.census import Census
from vk_provider.pods.actions import CreateInstance
from vk_provider.pods.slots import Record
from vk_provider.pods.types import Observation, PodUID


class Belonging:
    """One backend's view; ``siblings`` are those that may list the same instances."""

    def __init__(
        self,
        backend: str,
        siblings: frozenset[str],
        census: Census,
        records: Mapping[PodUID, Record],
    ) -> None:
        self._backend = backend
        self._siblings = siblings
        self._census = census
        self._records = records

    def is_ours(self, seen: Observation) -> bool:
        """Our cluster's and node's stamp, and not known as a sibling's instance."""
        if not self._census.is_ours(seen):
            return False
        record = self._records.get(seen.stamp.pod_uid)
        return record is None or not self._is_siblings(record, seen)

    def _is_siblings(self, record: Record, seen: Observation) -> bool:
        making = record.in_flight if isinstance(record.in_flight, CreateInstance) else None
        home = making.candidate.backend if making is not None else record.backend
        if home == self._backend or home not in self._siblings:
            return False
        if record.ref is None:
            # Its own list will show it: nobody else may tell of it while its create is in doubt.
            return making is not None or record.may_exist
        return record.ref == seen.ref
