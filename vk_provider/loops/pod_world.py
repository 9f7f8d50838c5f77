"""What a pod's decision may know beside the pod: made afresh for each step.

Fed by the door, the books and the lists; read by ``pods.lifecycle`` through ``loops.pod_workers``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from vk_provider.loops.admitted import Admitted
from vk_provider.loops.pod_accounts import PodAccounts
from vk_provider.loops.shell import Shell
from vk_provider.loops.threshold import Threshold
from vk_provider.pods.admission import Refusal
from vk_provider.pods.slots import Record
from vk_provider.pods.types import Json
from vk_provider.pods.world import BackendFacts, LifecycleLimits, World


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is true of the node as a whole, for every pod's world."""

    name: str
    backends: Mapping[str, BackendFacts]
    refusal: Callable[[Json], Refusal | None]
    admitted: Admitted
    host_ip: str | None = None
    direct: bool = False
    limits: LifecycleLimits = field(default_factory=LifecycleLimits)


class Surroundings:
    """Makes the world of one pod at one moment."""

    def __init__(
        self, facts: NodeFacts, threshold: Threshold, accounts: PodAccounts, shell: Shell
    ) -> None:
        self.is_synced = False
        """Whether every pod of the first complete view was handed in."""
        self.last_heard: dict[str, float] = {}
        """Steady seconds of each backend's last complete list, or of our first try."""
        self._facts = facts
        self._threshold = threshold
        self._accounts = accounts
        self._shell = shell
        self._begun = shell.clock.steady()

    def world(self, record: Record) -> World:
        """The world as this pod sees it now."""
        door, spending = self._threshold.view(), self._threshold.spending
        namespace = str((record.pod or {}).get("metadata", {}).get("namespace", ""))
        return World(
            now=self._shell.clock.now(),
            facts=self._facts.backends,
            held_until=lambda: self._accounts.held_until(record),
            refusal=self._facts.refusal,
            cooled=partial(self._threshold.cooled, namespace),
            door_closed=f"{door.closed}: {door.message}" if door.closed is not None else None,
            headroom=door.headroom,
            door_published=self._threshold.board.published,
            synced=self.is_synced,
            host_ip=self._facts.host_ip,
            direct=self._facts.direct,
            limits=self._facts.limits,
            silence=self.silence,
            over_budget=lambda candidates: spending.words(candidates, namespace),
            dismissed=spending.dismissed.get(record.uid, ""),
        )

    def silence(self, backend: str) -> float:
        """Seconds since a backend's last complete list; of one that is not configured, since we
        began."""
        return self._shell.clock.steady() - self.last_heard.get(backend, self._begun)
