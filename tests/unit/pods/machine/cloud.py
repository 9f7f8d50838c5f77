"""A backend in memory: instances that start, end, vanish, and lists that lag behind them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from vk_provider.pods.types import (
    ContainerObservation,
    EndCause,
    InstancePhase,
    InstanceRef,
    Observation,
    PodUID,
    Running,
    Stamp,
    Terminated,
)

LAG = timedelta(seconds=5)


@dataclass
class Instance:
    """One rented machine; it bills from ``made_at`` until ``gone_at``."""

    cloud: str
    observation: Observation
    made_at: datetime
    shown_from: datetime
    gone_at: datetime | None = None

    @property
    def uid(self) -> PodUID:
        """Whose it is."""
        return self.observation.stamp.pod_uid

    @property
    def is_live(self) -> bool:
        """Whether it runs, or is about to."""
        is_over = self.observation.phase is InstancePhase.ENDED
        return self.gone_at is None and not is_over


@dataclass
class Cloud:
    """One backend. Lists are complete, and late by up to ``LAG`` in both directions."""

    name: str
    instances: dict[str, Instance] = field(default_factory=dict)
    made: int = 0

    def create(self, stamp: Stamp, now: datetime, lateness: int) -> InstanceRef:
        """Rent one; it shows in lists ``lateness`` seconds later."""
        self.made += 1
        ref = InstanceRef(f"{self.name}-{self.made}")
        seen = Observation(stamp, ref, InstancePhase.STARTING)
        self.instances[ref.id] = Instance(self.name, seen, now, now + timedelta(seconds=lateness))
        return ref

    def delete(self, ref: InstanceRef, now: datetime) -> None:
        """End one; already gone is success."""
        one = self.instances.get(ref.id)
        if one is not None and one.gone_at is None:
            one.gone_at = now

    def run(self, ref_id: str) -> None:
        """Its container runs."""
        self._become(ref_id, InstancePhase.RUNNING, Running())

    def exit(self, ref_id: str, code: int | None, cause: EndCause | None) -> None:
        """It ends by itself, and goes on billing for its disk."""
        self._become(ref_id, InstancePhase.ENDED, Terminated(code), cause)

    def _become(
        self,
        ref_id: str,
        phase: InstancePhase,
        state: Running | Terminated,
        cause: EndCause | None = None,
    ) -> None:
        one = self.instances[ref_id]
        containers = (ContainerObservation("main", state),)
        one.observation = replace(
            one.observation, phase=phase, containers=containers, ended_by=cause
        )

    def shown(self, now: datetime) -> list[Observation]:
        """What a list that is taken now shows."""
        return [
            one.observation
            for one in self.instances.values()
            if one.shown_from <= now and (one.gone_at is None or now < one.gone_at + LAG / 2)
        ]

    def unpaid(self) -> list[Instance]:
        """What still bills."""
        return [one for one in self.instances.values() if one.gone_at is None]
