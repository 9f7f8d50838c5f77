"""What the Node's status shows of the loops' state at one moment.

Fed by the door, the lists and the pod cache; read by ``loops.node_heartbeat``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from vk_provider.kube.cache import PodCache
from vk_provider.loops.backend import Backend
from vk_provider.loops.offered import Offered
from vk_provider.loops.pod_workers import PodWorkers
from vk_provider.loops.relist import Relist
from vk_provider.loops.shell import Shell
from vk_provider.loops.threshold import Threshold
from vk_provider.node.describe import BackendView
from vk_provider.node.door import Closed, DoorView
from vk_provider.node.object import NodeView
from vk_provider.pods import desired
from vk_provider.pods.slots import Existence
from vk_provider.provider import capabilities

YOUNG_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Views:
    """Makes a ``NodeView`` when the heartbeat asks for one."""

    address: str
    cache: PodCache
    threshold: Threshold
    shell: Shell
    workers: PodWorkers
    offered: Offered
    backends: Mapping[str, tuple[Backend, Relist]]

    def node_view(self, door: DoorView) -> NodeView:
        """The node as it is now."""
        spending = self.threshold.spending
        return NodeView(
            address=self.address,
            backends=tuple(self._backend(*each) for each in self.backends.values()),
            in_use={} if door.headroom is None else self._in_use(),
            offered=self.offered.total(),
            headroom=None if door.headroom is None else self._room(door.headroom),
            closed_reason=str(door.closed) if door.closed is not None else None,
            closed_message=door.message,
            closed_until=self._calendar(door.reopens_at),
            budget=[each.words for each in spending.budget.shares(spending.now())],
            warnings=[each.words for each in spending.budget.warnings(spending.now())],
            spent=self.threshold.spend_memory.line(),
        )

    def _backend(self, backend: Backend, relist: Relist) -> BackendView:
        now = self.shell.clock.steady()
        known = self.threshold.door.backends[backend.name]
        closed = known.closed(now)
        avoided = self.threshold.experience.losses.words(backend.name, now)
        return BackendView(
            name=backend.name,
            provider=backend.provider_name,
            health=", ".join(filter(None, (known.health(now), avoided))),
            is_ready=closed not in (Closed.DENIED, Closed.OUTAGE),
            capabilities=capabilities(backend.provider),
            instances=relist.census.instances,
            usd_per_hour=relist.census.usd_per_hour,
        )

    def _in_use(self) -> Mapping[str, Fraction]:
        """As the scheduler counts: every pod bound here that is not in a terminal phase."""
        bound = sum(not desired.is_terminal(pod) for pod in self.cache.pods())
        return {"pods": Fraction(bound)}

    def _room(self, headroom: int) -> int:
        """What a half-open door lets in beside those who were bound a moment ago: they are counted
        as in use already, but have not passed the door yet."""
        oldest = self.shell.clock.now() - timedelta(seconds=YOUNG_SECONDS)
        on_their_way = sum(
            record.exists is Existence.NONE
            and record.in_flight is None
            and record.verdict is None
            and record.first_seen >= oldest
            for record in self.workers.records.values()
        )
        return max(0, headroom - on_their_way)

    def _calendar(self, steady: float | None) -> datetime | None:
        if steady is None:
            return None
        left = max(0.0, steady - self.shell.clock.steady())
        return (self.shell.clock.now() + timedelta(seconds=left)).replace(microsecond=0)
