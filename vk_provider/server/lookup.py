"""What the server knows of pods: a read-only view that ``app`` wires in.

Fed by whoever runs the pods (the server need not know the loops); feeds every endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from vk_provider.pods.types import InstanceRef, Json, LogLine
from vk_provider.provider import Provider


@dataclass(frozen=True, slots=True)
class ServedPod:
    """One pod of this node and where it runs.

    ``provider`` and ``ref`` are None while (or after) it has no instance. ``kept_lines`` are the
    logs that were saved before the instance was deleted, by container; an empty sequence says
    that the container printed nothing.
    """

    pod: Json
    provider: Provider | None = None
    ref: InstanceRef | None = None
    kept_lines: Mapping[str, Sequence[LogLine]] = field(default_factory=dict)


class PodLookup(Protocol):
    """The pods of one node. Every call answers from memory at once."""

    def pods(self) -> Sequence[Json]:
        """Every pod bound to the node, as the kubelet sees it: with our latest status."""

    def running_pods(self) -> Sequence[Json]:
        """The pods that have a running instance."""

    def providers(self) -> Sequence[Provider]:
        """The backends of the node."""

    def find(self, namespace: str, name: str) -> ServedPod | None:
        """One pod by name; None if the node has none of that name."""
