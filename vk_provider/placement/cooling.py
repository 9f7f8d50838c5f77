"""Places that lose instances: one loss is bad luck, two in a row are a reason to look elsewhere.

A backend shows no host, so what is remembered is the backend, the GPU type and the data centre.
Twice in a row cools such a place down for a while that doubles with each further loss; an instance
that lived long enough clears them. Pure: ``now`` is in steady seconds, jitter in [0, 1).
Fed by ``loops.threshold`` (how instances ended); read by the walk through the candidates.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from vk_provider.pods.types import Offer

IN_A_ROW = 2
GOOD_LIFE_SECONDS = 1800.0
"""An instance that lived so long says that its place is good."""
MOST_PLACES = 1024

Spot = tuple[str, str | None, str | None]
"""Backend, GPU type, data centre."""


@dataclass(slots=True)
class Loss:
    """How often in a row, and until when nobody is sent there."""

    count: int = 0
    until: float = 0.0


@dataclass(slots=True)
class Losses:
    """``first`` and ``cap`` of the cool-downs in seconds, as the door's; ``has_elsewhere``: there
    is more than one backend."""

    first: float = 30.0
    cap: float = 600.0
    has_elsewhere: bool = True
    _spots: OrderedDict[Spot, Loss] = field(default_factory=OrderedDict)

    def lost(self, spot: Spot, now: float, jitter: float) -> None:
        """An instance there died, vanished or was taken back. The only backend is not left for
        that if it names no places: the next instance may be as good there as anywhere."""
        if spot[1:] == (None, None) and not self.has_elsewhere:
            return
        loss = self._spots.setdefault(spot, Loss())
        loss.count += 1
        if loss.count >= IN_A_ROW:
            doubled = self.first * 2 ** min(loss.count - IN_A_ROW, 16)
            loss.until = now + min(self.cap, doubled) * (1.0 + jitter / 5.0)
        self._spots.move_to_end(spot)
        if len(self._spots) > MOST_PLACES:
            self._spots.popitem(last=False)

    def lived(self, spot: Spot) -> None:
        """An instance there has lived well."""
        self._spots.pop(spot, None)

    def cooled(self, backend: str, offer: Offer, now: float) -> bool:
        """Whether instances of this kind were lost there twice in a row, and not long ago. What
        leaves the data centre open is judged by itself."""
        loss = self._spots.get((backend, offer.gpu_type, offer.data_center))
        return loss is not None and now < loss.until

    def words(self, backend: str, now: float) -> str:
        """What of a backend is avoided, for ``kubectl describe node``; empty if nothing."""
        spots = [
            " in ".join(filter(None, (gpu_type or "CPU", data_center)))
            for (name, gpu_type, data_center), loss in self._spots.items()
            if name == backend and now < loss.until
        ]
        return f"avoided after losses: {', '.join(sorted(spots))}" if spots else ""
