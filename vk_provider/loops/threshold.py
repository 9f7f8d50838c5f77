"""The node's threshold: its door, its storm guard and its budget, in the time of the loops.

The pure parts reckon in steady seconds; here they meet the calendar, and whoever must hear of a
change (the heartbeat publishes the door, waiting pods look again) is told.
Fed by ``loops.pod_workers`` and ``loops.relist``; feeds ``loops.node_heartbeat``.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta

from vk_provider.faults import (
    DeniedError,
    OutcomeUnknownError,
    OutOfCapacityError,
    ProviderError,
    UnavailableError,
)
from vk_provider.loops.shell import Shell
from vk_provider.loops.spending import Spending
from vk_provider.node.door import Closed, Door, DoorView
from vk_provider.pods.stimuli import Candidate
from vk_provider.pods.storm import StormGuard
from vk_provider.pods.types import PodUID

STATES = ("open", "reopening", *(str(reason) for reason in Closed))


class Threshold:
    """Who may come in, and how fast verdicts may fall."""

    def __init__(
        self, door: Door, storm: StormGuard, shell: Shell, spending: Spending | None = None
    ) -> None:
        self.door = door
        self.storm = storm
        self.spending = spending or Spending()
        self.changed = asyncio.Event()
        """Set when the heartbeat has something to publish."""
        self._shell = shell
        self._shown = door.view(0.0)
        self._acknowledged = self._shown
        self._need: float | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._show_state()

    @property
    def published(self) -> bool:
        """Whether the API server has the latest door: its taint and its head-room."""
        return _visible(self._acknowledged) == _visible(self._shown)

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Hear when waiting pods should look again."""
        self._callbacks.append(callback)

    def view(self) -> DoorView:
        """The door now."""
        return self.door.view(self._shell.clock.steady())

    def mark_published(self, view: DoorView) -> None:
        """The API server has acknowledged this view."""
        before, self._acknowledged = self.published, view
        if self.published and not before:
            self._tell()

    def cooled(self, candidate: Candidate) -> bool:
        """Whether this offer is not to be tried now: it was refused, or the budget is spent."""
        if self.spending.is_over(candidate):
            return True
        return self.door.cooled(candidate.backend, candidate.offer.id, self._shell.clock.steady())

    def held_until(self, owner: str, uid: PodUID) -> datetime | None:
        """Until when the storm guard holds a pod of this owner, in calendar time."""
        steady = self._shell.clock.steady()
        until = self.storm.held_until(owner, uid, steady)
        if until is None:
            return None
        return self._shell.clock.now() + timedelta(seconds=until - steady)

    def enter(self, owner: str, uid: PodUID) -> None:
        """A first verdict begins."""
        self.storm.enter(owner, uid, self._shell.clock.steady())

    def charge(self, owner: str, uid: PodUID, ago_seconds: float = 0.0) -> None:
        """Failed is written for a pod of this owner (or was, so long ago)."""
        self.storm.charge(owner, uid, self._shell.clock.steady() - ago_seconds)

    def create_begins(self, uid: PodUID, candidate: Candidate) -> None:
        """A create takes its place in a half-open door, and its price from the budget."""
        self.spending.reserve(uid, candidate)
        self.door.entered(self._shell.clock.steady())
        self.look()

    def created(self, candidate: Candidate) -> None:
        """A create made an instance."""
        self.door.succeeded(candidate.backend, candidate.offer.id)
        self.look()

    def create_failed(self, uid: PodUID, candidate: Candidate, fault: ProviderError) -> None:
        """A create ended with a fault: cool down what it says is short."""
        now, jitter = self._shell.clock.steady(), self._shell.jitter()
        if not isinstance(fault, OutcomeUnknownError):
            self.spending.release(uid)
        if isinstance(fault, DeniedError):
            self.door.denied(candidate.backend, str(fault), now, jitter)
        elif isinstance(fault, OutOfCapacityError | UnavailableError):
            self.door.refused(candidate.backend, candidate.offer.id, str(fault), now, jitter)
        else:
            self.door.left()
        self.look()

    def exhausted(
        self, backends: Iterable[str], message: str, left: Collection[Candidate] = ()
    ) -> None:
        """A pod of the default need found nothing in these backends; ``left`` are the offers that
        nobody refused."""
        now = self._shell.clock.steady()
        if left and all(map(self.spending.is_over, left)):
            self._need = min(each.offer.usd_per_hour or 0.0 for each in left)
            self.door.over_budget(message)
        else:
            self.door.exhausted(backends, message, now, self._shell.jitter())
        self.look()

    def outage(self, backend: str, message: str | None) -> None:
        """A backend's lists fail for too long, or work again."""
        self.door.outage(backend, message, self._shell.clock.steady())
        self.look()

    def look(self) -> None:
        """Take in that time has passed or money is left again: publish a door that has changed,
        and look again when its cool-down ends."""
        if self._need is not None and self._need <= self.spending.left:
            self._need = None
            self.door.over_budget(None)
        view, before = self.view(), self._shown
        if view == before:
            return
        self._shown = view
        self._show_state()
        self.changed.set()
        self.close()
        if view.reopens_at is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(view.reopens_at, loop.time()) + 0.01, self.look)
        if _room(view) > _room(before):
            self._tell()  # a door that closes further gives nobody a reason to look

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self) -> None:
        for callback in self._callbacks:
            callback()

    def _show_state(self) -> None:
        view = self._shown
        now = "open" if view.headroom is None else "reopening"
        now = now if view.closed is None else str(view.closed)
        for state in STATES:
            self._shell.metrics.door_state.labels(self._shell.node, state).set(state == now)


def _visible(view: DoorView) -> tuple[Closed | None, int | None]:
    return view.closed, view.headroom


def _room(view: DoorView) -> float:
    if view.closed is not None:
        return -1.0
    return math.inf if view.headroom is None else view.headroom
