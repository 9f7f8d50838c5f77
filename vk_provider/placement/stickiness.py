"""Where the pods of a StatefulSet ran, by ordinal: a successor goes there first.

An ordinal's data (a network volume, a warm cache) lies where its last pod ran. The memory needs no
store: every pod of ours carries its placement in an annotation, so a restart reads it back from
the pods in the cache, Failed ones included. An ordinal whose pod was removed while nobody looked is
simply placed anew. Bounded: the ordinal that was not heard of for longest is forgotten first.
Pure. Fed by ``loops.pod_accounts``; read by ``loops.preparation``.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from vk_provider.placement.needs import Place

MOST_ORDINALS = 4096


@dataclass(slots=True)
class Ordinals:
    """Keyed by ``namespace/name`` of the pod, which for a StatefulSet names the ordinal."""

    _places: OrderedDict[str, Place] = field(default_factory=OrderedDict)

    def note(self, pod: str, place: Place) -> None:
        """The ordinal's pod was placed here. A place without a data centre does not take away
        what is known about the same backend."""
        known = self._places.get(pod)
        if known is not None and known.backend == place.backend and place.data_center is None:
            place = known
        self._places[pod] = place
        self._places.move_to_end(pod)
        if len(self._places) > MOST_ORDINALS:
            self._places.popitem(last=False)

    def predecessor(self, pod: str) -> Place | None:
        """Where the last pod of this name ran."""
        return self._places.get(pod)
