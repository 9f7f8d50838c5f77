"""Data centres that keep failing with a GPU type, so that the next instance is made elsewhere.

RunPod shows no host, and hands out a bad one again: what can be avoided is a data centre, for a
while. Once is bad luck, twice in a row is a reason. Where an offer names its data centre, the core
does the same with offers; this is for those that leave the choice to RunPod.
Pure: ``now`` is in seconds of the server's clock. Fed by ``memory`` (how instances ended) and by
the catalogue; read by ``creating``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vk_provider.pods.reading import mappings, text

IN_A_ROW = 2
FIRST_SECONDS = 600.0
MOST_SECONDS = 6 * 3600.0
MOST_PLACES = 1024

Spot = tuple[str, str]
"""GPU type (or CPU flavour), data centre."""


@dataclass(slots=True)
class Trouble:
    """How often in a row, and until when it is avoided."""

    count: int = 0
    until: float = 0.0


@dataclass(slots=True)
class Avoiding:
    """What one session has seen go wrong, and where a type can be had at all."""

    _spots: dict[Spot, Trouble] = field(default_factory=dict)
    _places: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def learn(self, catalogue: Mapping[str, Any]) -> None:
        """Take from the catalogue where each type is in stock."""
        for key in ("gpus", "cpus"):
            for _, entry in mappings(catalogue, key):
                stocked = [
                    text(place, "id")
                    for _, place in mappings(entry, "dataCenters")
                    if place.get("availability") != "NONE"
                ]
                # A CPU flavour's entry may name a size as well, which no request does.
                kind = text(entry, "id") if key == "gpus" else text(entry, "id").partition("-")[0]
                self._places[kind] = tuple(filter(None, stocked))

    def failed(self, spot: Spot, now: float) -> None:
        """An instance there died, vanished or never started."""
        trouble = self._spots.pop(spot, None) or Trouble()
        trouble.count += 1
        if trouble.count >= IN_A_ROW:
            doubled = FIRST_SECONDS * 2.0 ** min(trouble.count - IN_A_ROW, 16)
            trouble.until = now + min(MOST_SECONDS, doubled)
        self._spots[spot] = trouble
        if len(self._spots) > MOST_PLACES:
            del self._spots[next(iter(self._spots))]

    def worked(self, spot: Spot) -> None:
        """An instance there runs, and has for a while."""
        self._spots.pop(spot, None)

    def avoided(self, kind: str, now: float) -> tuple[str, ...]:
        """The data centres that instances of this type are kept out of now."""
        return tuple(
            place
            for (each, place), trouble in self._spots.items()
            if each == kind and now < trouble.until
        )

    def places(self, kind: str, wished: Sequence[str], now: float) -> tuple[str, ...]:
        """Where an instance of this type may go: the wished data centres, or any, without those
        that are avoided. Empty: RunPod chooses. Never so narrow that nothing is left."""
        avoided = self.avoided(kind, now)
        known = tuple(wished) or (self._places.get(kind, ()) if avoided else ())
        return tuple(place for place in known if place not in avoided) or tuple(wished)
