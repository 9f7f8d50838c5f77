"""How long starts took that were seen here: the memory behind ``fastest-start`` and warnings.

Per backend and GPU type the last starts are kept, from the create call to the first running
container, so image pulls are in it. Bounded both ways; rebuilt after a restart from what the pods
themselves tell. Pure: durations are given, in seconds. Fed by ``loops.pod_accounts``; read by the
ranking, the metrics and the lifecycle.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field

KEPT = 64
"""Starts per backend and GPU type; old ones say little about today's machines."""
MOST_KEYS = 256
LONGEST = 24 * 3600.0

Key = tuple[str, str | None]


@dataclass(slots=True)
class StartTimes:
    """The last starts by backend and GPU type (None: a CPU pod, or a backend that doesn't say)."""

    _seen: OrderedDict[Key, deque[float]] = field(default_factory=OrderedDict)

    def add(self, backend: str, gpu_type: str | None, seconds: float) -> None:
        """One more start; what can't be a duration is no start."""
        if not 0 <= seconds <= LONGEST:
            return
        key = (backend, gpu_type)
        self._seen.setdefault(key, deque(maxlen=KEPT)).append(seconds)
        self._seen.move_to_end(key)
        if len(self._seen) > MOST_KEYS:
            self._seen.popitem(last=False)

    def quantile(self, backend: str, gpu_type: str | None, share: float) -> float | None:
        """The duration that this share of the starts did not exceed; None where none was seen."""
        return _quantile(self._seen.get((backend, gpu_type), ()), share)

    def median(self, backend: str, gpu_type: str | None) -> float | None:
        """The median of this type; of the whole backend where this type never started."""
        known = self.quantile(backend, gpu_type, 0.5)
        if known is not None:
            return known
        all_types = [took for key, seen in self._seen.items() if key[0] == backend for took in seen]
        return _quantile(all_types, 0.5)

    def keys(self) -> tuple[Key, ...]:
        """What is known of at least one start."""
        return tuple(self._seen)


def _quantile(seen: deque[float] | list[float] | tuple[float, ...], share: float) -> float | None:
    """The nearest rank: a duration that really happened."""
    ordered = sorted(seen)
    if not ordered:
        return None
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
