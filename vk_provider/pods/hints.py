"""The placement annotations: what a user wishes, and where we put the pod.

Fed by a pod's annotations; feeds the ranking of offers and the lifecycle. A wish that can't be
read is a problem to be told, not ignored: it may have been what keeps a bill small.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from vk_provider import quantities
from vk_provider.faults import FieldProblem
from vk_provider.pods import names
from vk_provider.pods.reading import mapping, strings, text
from vk_provider.pods.types import Json, Placement, PlacementHints, PodUID

_GIB = Fraction(1024**3)
_ANY = "any"


def uid(pod: Json) -> PodUID:
    """The pod's key in everything we keep."""
    return PodUID(text(mapping(pod, "metadata"), "uid"))


def annotations_of(pod: Json) -> dict[str, str]:
    """The pod's annotations."""
    return dict(strings(mapping(pod, "metadata"), "annotations"))


def hints(pod: Json) -> tuple[PlacementHints, tuple[FieldProblem, ...]]:
    """The user's wishes, and every annotation of them that can't be read."""
    reader = _Reader(annotations_of(pod))
    gpu_types = reader.words(names.GPU_TYPES)
    named = tuple(each for each in gpu_types if each.lower() != _ANY)
    found = PlacementHints(
        gpu_types=named,
        min_gpu_memory_gib=reader.gib(names.MIN_GPU_MEMORY),
        max_usd_per_hour=reader.price(names.MAX_PRICE),
        backends=reader.words(names.BACKENDS),
        data_centers=reader.words(names.DATA_CENTERS),
        any_gpu=bool(named) and len(named) < len(gpu_types),
    )
    return found, tuple(reader.problems)


def placement(pod: Json) -> Placement | None:
    """Where the pod's instance was to be made, from ``vk-provider.dev/placement``.

    The annotation is a JSON object with ``backend``, ``offer`` and ``podUID``, and what else is
    known of the offer. One that carries another UID was copied from another pod, and says nothing
    about this one.
    """
    written = text(mapping(mapping(pod, "metadata"), "annotations"), names.PLACEMENT)
    found = _placed(written) if written else None
    return found if found is not None and found.pod_uid == uid(pod) else None


@lru_cache(maxsize=4096)  # read at every step of every pod, and written once
def _placed(written: str) -> Placement | None:
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        return None
    fields = ("podUID", "backend", "offer")
    values: list[Any] = [found.get(name) for name in fields] if isinstance(found, dict) else []
    if not values or not all(isinstance(value, str) for value in values):
        return None
    owner, backend, offer = values
    gpu_type, data_center, price = (found.get(name) for name in _FACTS)
    return Placement(
        pod_uid=PodUID(owner),
        backend=backend,
        offer=offer,
        why=str(found.get("why") or ""),
        gpu_type=gpu_type if isinstance(gpu_type, str) else None,
        data_center=data_center if isinstance(data_center, str) else None,
        usd_per_hour=float(price) if isinstance(price, int | float) else None,
    )


def render_placement(placed: Placement) -> str:
    """The value of the annotation that remembers a placement."""
    facts = (placed.gpu_type, placed.data_center, placed.usd_per_hour)
    told = {name: fact for name, fact in zip(_FACTS, facts, strict=True) if fact is not None}
    why = {"why": placed.why} if placed.why else {}
    return json.dumps(
        {"backend": placed.backend, "offer": placed.offer, "podUID": placed.pod_uid, **told, **why}
    )


_FACTS = ("gpuType", "dataCenter", "usdPerHour")


@dataclass(slots=True)
class _Reader:
    """Reads annotations and collects what is wrong with them."""

    found: dict[str, str]
    problems: list[FieldProblem] = field(default_factory=list)

    def words(self, name: str) -> tuple[str, ...]:
        """A list, in order: words between commas, or a JSON list of them."""
        shown = self.found.get(name, "").strip()
        words: list[object] = [*shown.split(",")]
        if shown.startswith("["):
            try:
                words = json.loads(shown)
            except (ValueError, RecursionError):
                words = [None]
        if not all(isinstance(word, str) for word in words):
            self._refuse(name, 'a list such as "NVIDIA L40S, NVIDIA A40"')
            return ()
        return tuple(dict.fromkeys(word for one in words if (word := str(one).strip())))

    def gib(self, name: str) -> int | None:
        """A size in whole GiB, rounded up."""
        if name not in self.found:
            return None
        try:
            size = quantities.parse(self.found[name])
        except ValueError:
            size = Fraction(0)
        if size >= _GIB:
            return math.ceil(size / _GIB)
        self._refuse(name, 'a quantity of at least 1Gi, such as "40Gi"')
        return None

    def price(self, name: str) -> float | None:
        """US dollars per hour."""
        if name not in self.found:
            return None
        try:
            price = float(self.found[name].strip().removeprefix("$"))
        except ValueError:
            price = 0.0
        if 0 < price < math.inf:
            return price
        self._refuse(name, 'US dollars per hour, more than 0, such as "1.20"')
        return None

    def _refuse(self, name: str, allowed: str) -> None:
        path = f"metadata.annotations[{name}]"
        self.problems.append(FieldProblem(path, f'found "{self.found[name]}", allowed: {allowed}'))
