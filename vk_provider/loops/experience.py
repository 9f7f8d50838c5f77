"""What a node learns while it runs: how long starts take, who loses instances, who ran where.

The memories are pure (``placement``); here they hear what happens and get their time.
Fed by ``loops.pod_accounts`` and ``app.intake`` (pods that were there before us); read by
``loops.preparation`` for the ranking, by ``loops.threshold`` and by each pod's world.
"""

from __future__ import annotations

import math

from vk_provider.loops.shell import Shell
from vk_provider.placement.cooling import GOOD_LIFE_SECONDS, Losses, Spot
from vk_provider.placement.needs import Place
from vk_provider.placement.occupancy import Occupancy
from vk_provider.placement.starts import StartTimes
from vk_provider.placement.stickiness import Ordinals
from vk_provider.pods import desired
from vk_provider.pods.types import Candidate, InstancePhase, Json, Observation, PodUID, Running

QUANTILES = (0.5, 0.95)
_THERE = (InstancePhase.STARTING, InstancePhase.RUNNING)


class Experience:
    """One per virtual node."""

    def __init__(self, shell: Shell, losses: Losses | None = None) -> None:
        self.starts = StartTimes()
        self.losses = losses or Losses()
        self.ordinals = Ordinals()
        self.occupancy = Occupancy()
        self._shell = shell
        self._begun: dict[PodUID, tuple[float, Candidate]] = {}
        self._running: dict[PodUID, tuple[float, frozenset[Spot]]] = {}

    def begun(self, uid: PodUID, candidate: Candidate) -> None:
        """A create call begins."""
        self._begun[uid] = (self._shell.clock.steady(), candidate)
        self.occupancy.take(uid, Place(candidate.backend, candidate.offer.data_center))

    def remembered(self, pod: Json) -> None:
        """A pod that was there before us: what its status and its placement tell."""
        placed = desired.placement(pod)
        if placed is None:
            return
        self.seen(pod)
        took = desired.start_seconds(pod)
        if took is not None:
            self._add(placed.backend, placed.gpu_type, took)

    def seen(self, pod: Json) -> None:
        """The pod's latest version: where its ordinal was placed."""
        placed = desired.placement(pod)
        if placed is None or not desired.is_ordinal(pod):
            return
        self.ordinals.note(desired.full_name(pod), Place(placed.backend, placed.data_center))

    def observed(self, uid: PodUID, pod: Json | None, backend: str, seen: Observation) -> None:
        """A backend shows the pod's instance."""
        place = Place(backend, seen.data_center)
        if seen.phase in _THERE:
            self.occupancy.take(uid, place)
        if pod is not None and desired.is_ordinal(pod):
            self.ordinals.note(desired.full_name(pod), place)
        if not any(isinstance(each.state, Running) for each in seen.containers):
            return
        now = self._shell.clock.steady()
        if uid not in self._running:
            self._running[uid] = (now, _spots(backend, seen))
        begun, candidate = self._begun.pop(uid, (None, None))
        if begun is not None and candidate is not None:
            self._add(backend, seen.gpu_type or candidate.offer.gpu_type, now - begun)

    def lost(self, uid: PodUID, backend: str, seen: Observation | None) -> None:
        """The backend lost the pod's instance, or took it back."""
        now, jitter = self._shell.clock.steady(), self._shell.jitter()
        self._part(uid)
        for spot in _spots(backend, seen):
            self.losses.lost(spot, now, jitter)

    def cooled(self, candidate: Candidate) -> bool:
        """Whether instances of this kind are lost there time and again."""
        now = self._shell.clock.steady()
        return self.losses.cooled(candidate.backend, candidate.offer, now)

    def over(self, uid: PodUID) -> None:
        """The pod is over, or nothing of it is left."""
        self._begun.pop(uid, None)
        self._part(uid)
        self.occupancy.leave(uid)

    def _part(self, uid: PodUID) -> None:
        """However it ended: one that lived well speaks for its place."""
        began, spots = self._running.pop(uid, (math.inf, frozenset()))
        if self._shell.clock.steady() - began >= GOOD_LIFE_SECONDS:
            for spot in spots:
                self.losses.lived(spot)

    def _add(self, backend: str, gpu_type: str | None, seconds: float) -> None:
        self.starts.add(backend, gpu_type, seconds)
        gauge = self._shell.metrics.start_seen_seconds
        for share in QUANTILES:
            known = self.starts.quantile(backend, gpu_type, share)
            if known is not None:
                labels = (self._shell.node, backend, gpu_type or "", f"{share:g}")
                gauge.labels(*labels).set(known)


def _spots(backend: str, seen: Observation | None) -> frozenset[Spot]:
    """Where an instance was: an offer may name the data centre, or leave it open."""
    gpu_type = seen.gpu_type if seen is not None else None
    center = seen.data_center if seen is not None else None
    return frozenset({(backend, gpu_type, center), (backend, gpu_type, None)})
