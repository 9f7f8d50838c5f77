"""One instance of the fake service: what it is at any moment follows from a few times alone.

No timer runs per instance: "starts at" and "ends at" are compared with the clock when somebody
looks. Fed by :mod:`.fake_service`; feeds its lists, ledger and logs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from vk_provider.pods.types import (
    ContainerObservation,
    ContainerState,
    EndCause,
    InstancePhase,
    InstanceRef,
    Observation,
    Offer,
    Running,
    Stamp,
    Terminated,
    Waiting,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What the service was told to run: the names of the containers, and how their life goes.

    ``init`` maps each init container to whether it is a sidecar, which runs beside the others.
    ``ended_by`` makes its end no exit of its containers but the machine's, ``vanish_after_seconds``
    takes it from the lists without a word, and ``openings`` are what containers write first.
    """

    containers: tuple[str, ...] = ("main",)
    init: Mapping[str, bool] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)
    start_after_seconds: float = 0.0
    run_seconds: float | None = None
    exit_code: int = 0
    log_every_seconds: float | None = None
    ended_by: EndCause | None = None
    vanish_after_seconds: float | None = None
    openings: Mapping[str, bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class End:
    """How an instance ended, where it was not its own plan."""

    at: float
    exit_code: int | None = None
    cause: EndCause | None = None
    reason: str | None = None
    message: str | None = None


@dataclass(slots=True, eq=False)
class FakeInstance:
    """An instance and its history. ``stamp`` None: it belongs to a stranger."""

    ref: InstanceRef
    stamp: Stamp | None
    plan: Plan
    offer: Offer
    created_at: float
    wall_time: Callable[[float], datetime]
    address: str | None = None
    starts_at: float = math.inf
    end: End | None = None
    deleted_at: float | None = None
    garbled: bool = False
    written: list[tuple[float, str, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts_at = self.created_at + self.plan.start_after_seconds
        if self.plan.run_seconds is not None:
            self.end = self._planned_end(self.starts_at + self.plan.run_seconds)

    def _planned_end(self, at: float) -> End:
        cause = self.plan.ended_by
        if cause is None:
            return End(at, self.plan.exit_code)
        return End(at, None, cause, message=f"the annotation asks for this end: {cause}")

    def is_shown(self, now: float) -> bool:
        """Whether the service still knows of it."""
        after = self.plan.vanish_after_seconds
        return after is None or now < self.created_at + after

    @property
    def changes_at(self) -> tuple[float, ...]:
        """The moments at which it changes by itself."""
        return (self.starts_at,) if self.end is None else (self.starts_at, self.end.at)

    def phase(self, now: float) -> InstancePhase:
        """Where it is in its life."""
        if self.garbled:
            return InstancePhase.UNKNOWN
        if self.deleted_at is not None and self.deleted_at <= now:
            return InstancePhase.DELETING
        if self.end is not None and self.end.at <= now:
            return InstancePhase.ENDED
        return InstancePhase.RUNNING if self.starts_at <= now else InstancePhase.STARTING

    def is_billed(self, now: float, ended_is_free: bool = True) -> bool:
        """Does its bill run on?"""
        ended = ended_is_free and self.end is not None and self.end.at <= now
        return self.deleted_at is None and self.is_shown(now) and not ended

    def billed_until(self, now: float, ended_is_free: bool) -> float:
        """When its bill stopped, or ``now`` if it runs on."""
        stops = [now]
        if self.deleted_at is not None:
            stops.append(self.deleted_at)
        if self.plan.vanish_after_seconds is not None:
            stops.append(self.created_at + self.plan.vanish_after_seconds)
        if ended_is_free and self.end is not None:
            stops.append(self.end.at)
        return min(stops)

    def observe(self, now: float, stamp: Stamp) -> Observation:
        """It as a list shows it to the owner of ``stamp``."""
        phase = self.phase(now)
        ended = self.end if phase is InstancePhase.ENDED else None
        shows = phase is not InstancePhase.UNKNOWN
        return Observation(
            stamp=stamp,
            ref=self.ref,
            phase=phase,
            containers=self._containers(self.plan.containers, now) if shows else (),
            init_containers=self._init_containers(now) if shows else (),
            ended_by=ended.cause if ended else None,
            reason=ended.reason if ended else None,
            message=ended.message if ended else None,
            addresses=(self.address,) if self.address and self.starts_at <= now else (),
            created_at=self.wall_time(self.created_at),
            gpu_type=self.offer.gpu_type,
            data_center=self.offer.data_center,
            usd_per_hour=self.offer.usd_per_hour,
        )

    def _containers(self, names: Sequence[str], now: float) -> tuple[ContainerObservation, ...]:
        state = self._state(now)
        return tuple(self._container(name, state) for name in names)

    def _init_containers(self, now: float) -> tuple[ContainerObservation, ...]:
        state, started = self._state(now), self.wall_time(self.starts_at)
        done = Terminated(0, "Completed", started_at=started, finished_at=started)
        return tuple(
            self._container(name, state if stays or isinstance(state, Waiting) else done)
            for name, stays in self.plan.init.items()
        )

    def _container(self, name: str, state: ContainerState) -> ContainerObservation:
        runs = not isinstance(state, Waiting)
        return ContainerObservation(
            name=name,
            state=state,
            image=self.plan.images.get(name) if runs else None,
            container_id=f"fake://{self.ref.id}/{name}" if runs else None,
        )

    def _state(self, now: float) -> ContainerState:
        if self.end is not None and self.end.at <= now:
            code = self.end.exit_code
            began = min(self.starts_at, self.end.at)
            return Terminated(
                exit_code=code,
                reason=None if code is None else "Error" if code else "Completed",
                message=self.end.message,
                started_at=self.wall_time(began),
                finished_at=self.wall_time(self.end.at),
            )
        if self.starts_at <= now:
            return Running(self.wall_time(self.starts_at))
        return Waiting("ContainerCreating")
