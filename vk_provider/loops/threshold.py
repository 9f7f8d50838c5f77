"""The node's threshold: its door and its storm guard, in the time of the loops.

The pure parts reckon in steady seconds; here they meet the calendar, and whoever must hear of a
change (the heartbeat publishes the door, waiting pods look again) is told.
Fed by ``loops.pod_workers`` and ``loops.relist``; feeds ``loops.node_heartbeat``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from vk_provider.faults import DeniedError, OutOfCapacityError, ProviderError, UnavailableError
from vk_provider.loops.shell import Shell
from vk_provider.node.door import Door, DoorView
from vk_provider.pods.stimuli import Candidate
from vk_provider.pods.storm import StormGuard
from vk_provider.pods.types import PodUID


class Threshold:
    """Who may come in, and how fast verdicts may fall."""

    def __init__(self, door: Door, storm: StormGuard, shell: Shell) -> None:
        self.door = door
        self.storm = storm
        self.changed = asyncio.Event()
        """Set when the heartbeat has something to publish."""
        self._shell = shell
        self._shown = door.view(0.0)
        self._published = True
        self._callbacks: list[Callable[[], None]] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def published(self) -> bool:
        """Whether the API server has the latest door."""
        return self._published

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Hear when waiting pods should look again."""
        self._callbacks.append(callback)

    def view(self) -> DoorView:
        """The door now."""
        return self.door.view(self._shell.clock.steady())

    def mark_published(self, view: DoorView) -> None:
        """The API server has acknowledged this view."""
        if view.closed == self._shown.closed and not self._published:
            self._published = True
            self._tell()

    def cooled(self, candidate: Candidate) -> bool:
        """Whether this offer is not to be tried now."""
        return self.door.cooled(candidate.backend, candidate.offer.id, self._shell.clock.steady())

    def held_until(self, owner: str, uid: PodUID) -> datetime | None:
        """Until when the storm guard holds a pod of this owner, in calendar time."""
        steady = self._shell.clock.steady()
        until = self.storm.held_until(owner, uid, steady)
        return (
            None if until is None else self._shell.clock.now() + timedelta(seconds=until - steady)
        )

    def enter(self, owner: str, uid: PodUID) -> None:
        """A first verdict begins."""
        self.storm.enter(owner, uid, self._shell.clock.steady())

    def charge(self, owner: str, uid: PodUID, ago_seconds: float = 0.0) -> None:
        """Failed is written for a pod of this owner (or was, so long ago)."""
        self.storm.charge(owner, uid, self._shell.clock.steady() - ago_seconds)

    def create_begins(self) -> None:
        """A create takes its place in a half-open door."""
        self.door.entered(self._shell.clock.steady())
        self._look()

    def created(self, candidate: Candidate) -> None:
        """A create made an instance."""
        self.door.succeeded(candidate.backend, candidate.offer.id)
        self._look()

    def create_failed(self, candidate: Candidate, fault: ProviderError) -> None:
        """A create ended with a fault: cool down what it says is short."""
        now, jitter = self._shell.clock.steady(), self._shell.jitter()
        if isinstance(fault, DeniedError):
            self.door.denied(candidate.backend, str(fault), now, jitter)
        elif isinstance(fault, OutOfCapacityError | UnavailableError):
            self.door.refused(candidate.backend, candidate.offer.id, str(fault), now, jitter)
        else:
            self.door.left()
        self._look()

    def exhausted(self, backends: Iterable[str], message: str) -> None:
        """A pod of the default need found nothing in these backends."""
        self.door.exhausted(backends, message, self._shell.clock.steady(), self._shell.jitter())
        self._look()

    def outage(self, backend: str, message: str | None) -> None:
        """A backend's lists fail for too long, or work again."""
        self.door.outage(backend, message, self._shell.clock.steady())
        self._look()

    def _look(self) -> None:
        """Publish a door that has changed, and look again when its cool-down ends."""
        view = self.view()
        if view == self._shown:
            return
        if view.closed != self._shown.closed:
            self._published = False
        self._shown = view
        self.changed.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if view.reopens_at is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(view.reopens_at, loop.time()) + 0.01, self._look)
        self._tell()

    def _tell(self) -> None:
        for callback in self._callbacks:
            callback()
