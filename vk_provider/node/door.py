"""The door: whether new pods are let in, and how many at once while it reopens.

Closing is cheap and exact: allocatable ``pods`` falls to what is in use, and a taint says why.
Reopening is half-open: removing a taint lets 50 waiting pods in within half a second, so first
there is room for one pod, whose create is the probe; success doubles the room up to capacity,
failure closes again with a doubled, jittered, capped cool-down. Nothing is bought to probe.
Fed by ``loops`` (results of creates and lists); its :class:`DoorView` feeds ``node.object`` and
``pods.lifecycle``. Pure: ``now`` (seconds of a steady clock) and jitter are arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum


class Closed(StrEnum):
    """Why a backend or the node lets nobody in: the value of the ``unavailable`` taint."""

    CAPACITY = "capacity"
    DENIED = "denied"
    BUDGET = "budget"
    OUTAGE = "outage"


_NOT_BY_TIME = (Closed.OUTAGE, Closed.BUDGET)
"""What ends by a list that works, or by instances that end, and not by waiting."""


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """Cool-downs in seconds: the first, and the cap of the doubling. ``denied_first`` is for
    credentials, quota and billing, which heal slowly."""

    first: float = 30.0
    cap: float = 600.0
    denied_first: float = 300.0


@dataclass(slots=True)
class CoolDown:
    """One thing that was refused: until when, how often in a row, and the backend's words."""

    until: float = 0.0
    level: int = 0
    message: str = ""

    def begin(self, now: float, first: float, cap: float, jitter: float) -> None:
        """Start or double the cool-down; ``jitter`` in [0, 1) adds up to a fifth."""
        self.until = now + min(cap, first * 2**self.level) * (1.0 + jitter / 5.0)
        self.level = min(self.level + 1, 16)


@dataclass(slots=True)
class BackendDoor:
    """What is known of one backend: refused offers, a denial, an outage."""

    offers: dict[str, CoolDown] = field(default_factory=dict)
    default_refused: bool = False
    denied: CoolDown | None = None
    outage: str | None = None

    def closed(self, now: float) -> Closed | None:
        """Why this backend takes no pod of the node's default need, or None."""
        if self.outage is not None:
            return Closed.OUTAGE
        if self.denied is not None and now < self.denied.until:
            return Closed.DENIED
        return Closed.CAPACITY if self.default_refused else None

    def cooled(self, offer: str, now: float) -> bool:
        """Whether this offer is not to be tried now."""
        if self.outage is not None or (self.denied is not None and now < self.denied.until):
            return True
        cool = self.offers.get(offer)
        return cool is not None and now < cool.until

    def try_again(self) -> None:
        """All that was refused may be tried once more; how often it was is remembered."""
        self.default_refused = False
        for cool in (*self.offers.values(), *([self.denied] if self.denied else [])):
            cool.until = 0.0

    def health(self, now: float) -> str:
        """One sentence for ``kubectl describe node``."""
        closed = self.closed(now)
        if closed is Closed.OUTAGE:
            return f"outage: {self.outage}"
        if closed is Closed.DENIED and self.denied is not None:
            return f"denied: {self.denied.message}"
        cooling = sorted(key for key, cool in self.offers.items() if now < cool.until)
        if cooling:
            return f"out of capacity: {', '.join(cooling)}"
        return "out of capacity" if closed is Closed.CAPACITY else "ok"


@dataclass(frozen=True, slots=True)
class DoorView:
    """The door as others see it at one moment.

    ``headroom``: how many pods may still enter; None: no limit but capacity. ``reopens_at``:
    steady-clock seconds. ``closed`` is the taint's value.
    """

    closed: Closed | None = None
    message: str = ""
    headroom: int | None = None
    reopens_at: float | None = None


@dataclass(slots=True)
class HalfOpen:
    """Who is on the way through a door that reopens: creates under way and places left.

    ``before`` counts creates that began before the door opened a gap: they take no place, and
    since an answer does not say which create it ends, the oldest are taken to end first.
    """

    room: int | None = None
    under_way: int = 0
    before: int = 0
    succeeded: int = 0

    def open_a_gap(self) -> None:
        """One place: the next create is the probe."""
        self.room, self.before, self.succeeded = 1, self.under_way, 0

    def left(self) -> int | None:
        """Places that are free; None: no limit."""
        if self.room is None:
            return None
        return max(0, self.room - self.succeeded - (self.under_way - self.before))

    def ended(self, *, well: bool) -> None:
        """A create is over; when all places were used well there are twice as many."""
        self.under_way = max(0, self.under_way - 1)
        if self.before:
            self.before -= 1
        elif well and self.room is not None:
            self.succeeded += 1
            if self.succeeded >= self.room:
                self.room, self.succeeded = self.room * 2, 0


@dataclass(slots=True)
class Latch:
    """Whether the door is closed, why, until when, and how far it has reopened."""

    backends: dict[str, BackendDoor]
    limits: DoorLimits
    why: Closed | None = None
    closed: CoolDown = field(default_factory=CoolDown)
    creates: HalfOpen = field(default_factory=HalfOpen)

    def judge(self, message: str, now: float, jitter: float) -> None:
        """Close if every backend is closed. A spent budget is a reason of its own."""
        reasons = [door.closed(now) for door in self.backends.values()]
        if None in reasons or self.why is Closed.BUDGET:
            return
        kinds = (Closed.CAPACITY, Closed.DENIED, Closed.OUTAGE)
        why = next(kind for kind in kinds if kind in reasons)
        if self.why is None:
            first = self.limits.denied_first if why is Closed.DENIED else self.limits.first
            self.closed.begin(now, first, self.limits.cap, jitter)
        self.fall(why, message)

    def fall(self, why: Closed, message: str) -> None:
        """Closed, for this reason."""
        self.why, self.closed.message, self.creates.room = why, message, None

    def tick(self, now: float) -> None:
        """A cool-down that is over leaves a gap."""
        if self.why is None or self.why in _NOT_BY_TIME:
            return
        if now >= self.closed.until:
            self.open_a_gap()

    def open_a_gap(self) -> None:
        """One pod may try everything again; where all is known to be down, none need try."""
        outages = [door.outage for door in self.backends.values()]
        if all(outages):
            self.fall(Closed.OUTAGE, str(outages[0]))
            return
        self.why = None
        self.creates.open_a_gap()
        for door in self.backends.values():
            door.try_again()


@dataclass(slots=True)
class Door:
    """The node's door over its backends. Mutable but pure; one per virtual node.

    Each create is bracketed by :meth:`entered` and one of :meth:`succeeded`, :meth:`refused`,
    :meth:`denied` and :meth:`left`.
    """

    backends: dict[str, BackendDoor]
    capacity: int
    limits: DoorLimits = DoorLimits()
    _latch: Latch = field(init=False)

    def __post_init__(self) -> None:
        """Hang the latch."""
        self._latch = Latch(self.backends, self.limits)

    @classmethod
    def over(cls, names: Iterable[str], capacity: int, limits: DoorLimits | None = None) -> Door:
        """An open door over these backends; ``capacity`` is the configured number of pods."""
        return cls({name: BackendDoor() for name in names}, capacity, limits or DoorLimits())

    def view(self, now: float) -> DoorView:
        """The state at ``now``, after letting a finished cool-down turn into half-open."""
        self._latch.tick(now)
        why, closed = self._latch.why, self._latch.closed
        if why is not None:
            return DoorView(why, closed.message, 0, None if why in _NOT_BY_TIME else closed.until)
        left = self._latch.creates.left()
        return DoorView() if left is None else DoorView(message="reopening", headroom=left)

    def cooled(self, backend: str, offer: str, now: float) -> bool:
        """Whether this offer is not to be tried now."""
        return self.backends[backend].cooled(offer, now)

    def entered(self, now: float) -> None:
        """A create begins: it takes one place of a half-open door."""
        self._latch.tick(now)
        self._latch.creates.under_way += 1

    def left(self) -> None:
        """A create ended without an answer about capacity: its place is free again."""
        self._latch.creates.ended(well=False)

    def succeeded(self, backend: str, offer: str) -> None:
        """A create made an instance: clear what it disproves; a half-open door opens further."""
        door = self.backends[backend]
        door.offers.pop(offer, None)
        door.default_refused = False
        door.denied = None
        self._latch.creates.ended(well=True)
        if self._latch.creates.room is not None and self._latch.creates.room >= self.capacity:
            self._latch.creates.room = None
            self._latch.closed = CoolDown()

    def refused(self, backend: str, offer: str, message: str, now: float, jitter: float) -> None:
        """A create ended because its offer has no capacity."""
        self._latch.creates.ended(well=False)
        cool = self.backends[backend].offers.setdefault(offer, CoolDown())
        cool.message = message
        if now >= cool.until:  # several creates that were under way count once
            cool.begin(now, self.limits.first, self.limits.cap, jitter)

    def exhausted(self, backends: Iterable[str], message: str, now: float, jitter: float) -> None:
        """A pod of the node's default need found no capacity in any offer of these backends."""
        self._latch.tick(now)
        for name in backends:
            self.backends[name].default_refused = True
        self._latch.judge(message, now, jitter)

    def denied(
        self, backend: str, message: str, now: float, jitter: float, *, by_create: bool = True
    ) -> None:
        """Credentials, quota or billing were refused, to a create or to another call: the whole
        backend closes, with a slow probe."""
        if by_create:
            self._latch.creates.ended(well=False)
        self._latch.tick(now)
        door = self.backends[backend]
        door.denied = door.denied or CoolDown()
        door.denied.message = message
        if now >= door.denied.until:
            door.denied.begin(now, self.limits.denied_first, self.limits.cap, jitter)
        self._latch.judge(message, now, jitter)

    def outage(self, backend: str, message: str | None, now: float) -> None:
        """Lists have failed for longer than the threshold (a message), or work again (None)."""
        door = self.backends[backend]
        if door.outage == message:
            return
        self._latch.tick(now)
        door.outage = message
        if message is not None:
            self._latch.judge(message, now, 0.0)
        elif self._latch.why in (None, Closed.BUDGET):
            return
        elif door.closed(now) is None:
            self._latch.open_a_gap()
        else:  # closed for another reason from now on
            self._latch.judge(self._latch.closed.message, now, 0.0)

    def over_budget(self, message: str | None) -> None:
        """The default need costs more than is left of the budget (a message), or fits again."""
        if message is not None:
            self._latch.fall(Closed.BUDGET, message)
        elif self._latch.why is Closed.BUDGET:
            self._latch.open_a_gap()
