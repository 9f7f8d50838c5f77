"""How well the other cluster's API is: Healthy, Suspect, Lost, and back again through Recovered.

A first failure makes it Suspect, and failures of whatever kind (network, TLS, identity) make it
Lost after a while that counts from the first of them; one good answer ends both. Nothing in here
touches a pod: an outage of an API is not a death of a pod.
Pure. Fed by ``provider`` with every list's and the watch's outcome; feeds its log and its faults.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """What is known of the other cluster's API."""

    HEALTHY = "Healthy"
    SUSPECT = "Suspect"
    LOST = "Lost"
    RECOVERED = "Recovered"
    """It answers again, for the first time after it was Lost."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """The state, and since when (by a steady clock) it fails; ``why`` is the last failure."""

    health: Health = Health.HEALTHY
    failing_since: float | None = None
    why: str = ""

    def failed(self, why: str, now: float, lost_after: float) -> Pulse:
        """One more failure."""
        since = now if self.failing_since is None else self.failing_since
        health = Health.LOST if now - since >= lost_after else Health.SUSPECT
        return Pulse(health, since, why)

    def answered(self) -> Pulse:
        """A good answer."""
        was_lost = self.health is Health.LOST
        return Pulse(Health.RECOVERED if was_lost else Health.HEALTHY)

    def told(self, now: float) -> str:
        """The state in words, for people."""
        if self.failing_since is None:
            return f"the other cluster is {self.health}"
        seconds = now - self.failing_since
        return f"the other cluster is {self.health} for {seconds:.0f} s: {self.why}"
