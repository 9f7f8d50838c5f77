"""The node's threshold: its door and its budget, in the time of the loops.

The pure door reckons in steady seconds; what it turns into with time, or when money is left again,
is looked for here.
Fed by ``loops.pod_actions`` and ``loops.relist``; shown by ``loops.door_board``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable

from vk_provider.faults import (
    DeniedError,
    OutcomeUnknownError,
    OutOfCapacityError,
    ProviderError,
    UnavailableError,
)
from vk_provider.loops.door_board import DoorBoard
from vk_provider.loops.experience import Experience
from vk_provider.loops.money_door import MoneyDoor
from vk_provider.loops.shell import Shell
from vk_provider.loops.spend_memory import SpendMemory
from vk_provider.loops.spending import Spending
from vk_provider.node.door import Door, DoorView
from vk_provider.placement.budget import BudgetLimits
from vk_provider.pods.types import Candidate, PodUID


class Threshold:
    """Who may come in."""

    def __init__(
        self,
        door: Door,
        shell: Shell,
        spending: Spending | None = None,
        experience: Experience | None = None,
    ) -> None:
        self.door = door
        self.spending = spending or Spending(BudgetLimits(), shell)
        self.experience = experience or Experience(shell)
        self.money = MoneyDoor(door, self.spending)
        self.spend_memory = SpendMemory(self.spending)
        self.node_uid = ""
        """The Node's UID, for Events about it; empty until it is registered."""
        self.board = DoorBoard(door.view(0.0), shell)
        self._shell = shell
        self._timer: asyncio.TimerHandle | None = None

    def view(self) -> DoorView:
        """The door now."""
        return self.door.view(self._shell.clock.steady())

    def cooled(self, namespace: str, candidate: Candidate) -> bool:
        """Whether this offer is not to be tried now for a pod of this namespace: it was refused,
        it loses instances, or the budget is spent."""
        if self.spending.over(candidate, namespace) or self.experience.cooled(candidate):
            return True
        return self.door.cooled(candidate.backend, candidate.offer.id, self._shell.clock.steady())

    def create_begins(self, uid: PodUID, namespace: str, candidate: Candidate) -> None:
        """A create takes its place in a half-open door, and its price from the budget."""
        self.spending.reserve(uid, namespace, candidate)
        self.experience.begun(uid, candidate)
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

    def denied(self, backend: str, fault: DeniedError) -> None:
        """A backend refused us in another call than a create, its catalogue's for one."""
        now, jitter = self._shell.clock.steady(), self._shell.jitter()
        self.door.denied(backend, str(fault), now, jitter, by_create=False)
        self.look()

    def exhausted(
        self,
        backends: Iterable[str],
        message: str,
        left: Collection[Candidate] = (),
        namespace: str = "",
    ) -> None:
        """A pod of the default need found nothing in these backends; ``left`` are the offers that
        nobody refused. What only its own namespace has no money for closes no door."""
        now = self._shell.clock.steady()
        is_closed = self.money.exhausted(left, message)
        if not is_closed and not self.money.is_over_for(left, namespace):
            self.door.exhausted(backends, message, now, self._shell.jitter())
        self.look()

    def outage(self, backend: str, message: str | None) -> None:
        """A backend's lists fail for too long, or work again."""
        self.door.outage(backend, message, self._shell.clock.steady())
        self.look()

    def look(self) -> None:
        """Take in that time has passed or money is left again: show a door that has changed, and
        look again when its cool-down ends."""
        self.money.look()
        view = self.view()
        if not self.board.show(view):
            return
        self.close()
        if view.reopens_at is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(view.reopens_at, loop.time()) + 0.01, self.look)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
