"""Would home win? The scheduler's own arithmetic for one pod at home and outside. Pure.

The default plugins and weights of kube-scheduler, as far as they can be computed from Nodes and
Pods; what spreads replicas is only bounded, since it depends on where the others are. Fed by
``doctor.scoring`` with objects of the API server; feeds :mod:`.scoring_advice`.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from vk_provider.bursting.node_terms import matching_weight
from vk_provider.pods.types import Json
from vk_provider.quantities import Amounts, parse, pod_requests
from vk_provider.taints import PREFER_NO_SCHEDULE, tolerates

MOST = 100.0
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
SPREAD_WEIGHT = 2
"""PodTopologySpread: up to so many times a hundred for the node with the fewest replicas."""

_SCORED = ("cpu", "memory")
# What the scheduler takes for a container that asks for nothing.
_UNSAID = {"cpu": Fraction(1, 10), "memory": Fraction(200 * 2**20)}
_MIB = 2**20
_SMALL_IMAGE, _LARGE_IMAGE = 23 * _MIB, 1000 * _MIB


@dataclass(frozen=True, slots=True)
class Place:
    """A node as the scheduler scores it. ``requested`` is what its pods ask for."""

    name: str
    is_outside: bool
    allocatable: Amounts
    requested: Amounts
    labels: Mapping[str, str]
    taints: tuple[Json, ...]
    images: Mapping[str, int]
    """Bytes by name."""


@dataclass(frozen=True, slots=True)
class Score:
    """What one plugin gives to the best node at home and outside, its weight included."""

    plugin: str
    home: float
    outside: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """All scores of the two nodes that compete, and what is left for home."""

    home: str
    outside: str
    scores: tuple[Score, ...]

    @property
    def margin(self) -> float:
        """How far home is ahead; below 0 where it is not."""
        return sum(score.home - score.outside for score in self.scores)

    @property
    def worst_margin(self) -> float:
        """The same where all replicas are at home, and none outside."""
        return self.margin - SPREAD_WEIGHT * MOST


def place(node: Json, pods: Iterable[Json], is_outside: bool) -> Place:
    """A node and what its pods hold."""
    status, spec, metadata = (node.get(key) or {} for key in ("status", "spec", "metadata"))
    requested: Amounts = {}
    for pod in pods:
        for resource, amount in requests_of(pod).items():
            requested[resource] = requested.get(resource, Fraction(0)) + amount
    return Place(
        name=str(metadata.get("name", "")),
        is_outside=is_outside,
        allocatable={key: parse(text) for key, text in (status.get("allocatable") or {}).items()},
        requested=requested,
        labels=metadata.get("labels") or {},
        taints=tuple(spec.get("taints") or ()),
        images={
            name: int(one.get("sizeBytes") or 0)
            for one in status.get("images") or ()
            for name in one.get("names") or ()
        },
    )


def requests_of(pod: Json) -> Amounts:
    """What a pod counts for, with the scheduler's guess for what it does not say."""
    try:
        found = pod_requests(pod)
    except ValueError:
        return {}
    containers = len((pod.get("spec") or {}).get("containers") or ())
    missing = {name: amount * containers for name, amount in _UNSAID.items() if name not in found}
    return {**found, **missing}


def compare(pod: Json, places: Sequence[Place]) -> Verdict | None:
    """The best node at home against the best outside; None where either has no room for it."""
    wanted = requests_of(pod)
    feasible = [one for one in places if _fits(one, wanted)]
    scored = {one.name: _scores(pod, wanted, one, feasible) for one in feasible}
    best = {
        side: max(
            (one for one in feasible if one.is_outside is side),
            key=lambda one: (sum(scored[one.name].values()), one.name),
            default=None,
        )
        for side in (False, True)
    }
    home, outside = best[False], best[True]
    if home is None or outside is None:
        return None
    return Verdict(
        home.name,
        outside.name,
        tuple(
            Score(plugin, scored[home.name][plugin], scored[outside.name][plugin])
            for plugin in WEIGHTS
        ),
    )


def _fits(one: Place, wanted: Amounts) -> bool:
    return all(
        amount + one.requested.get(resource, 0) <= one.allocatable.get(resource, Fraction(0))
        for resource, amount in wanted.items()
    )


def _scores(pod: Json, wanted: Amounts, one: Place, places: Sequence[Place]) -> dict[str, float]:
    after = {
        resource: float((one.requested.get(resource, 0) + wanted[resource]) / have)
        for resource in _SCORED
        if (have := one.allocatable.get(resource))
    }
    raw = {
        "TaintToleration": MOST - _normalized(_repelled, pod, one, places),
        "NodeAffinity": _normalized(_preferred, pod, one, places),
        "NodeResourcesFit": MOST * statistics.fmean([1 - used for used in after.values()] or [0]),
        "NodeResourcesBalancedAllocation": MOST * (1 - statistics.pstdev(after.values() or [0])),
        "ImageLocality": _image_score(pod, one, places),
    }
    return {plugin: raw[plugin] * weight for plugin, weight in WEIGHTS.items()}


def _preferred(pod: Json, place_: Place) -> float:
    """The weights of the pod's preferences that a node meets."""
    return matching_weight(pod, place_.labels)


def _repelled(pod: Json, place_: Place) -> float:
    """How many preferences of a node the pod does not tolerate."""
    held = tuple((pod.get("spec") or {}).get("tolerations") or ())
    return sum(
        1.0
        for taint in place_.taints
        if taint.get("effect") == PREFER_NO_SCHEDULE
        and not any(tolerates(one, taint) for one in held)
    )


def _normalized(
    count: Callable[[Json, Place], float], pod: Json, one: Place, places: Sequence[Place]
) -> float:
    """The share of the most that any node has, as the scheduler stretches it to a hundred."""
    most = max(count(pod, other) for other in places)
    return MOST * count(pod, one) / most if most else 0.0


def _image_score(pod: Json, one: Place, places: Sequence[Place]) -> float:
    """Large images that are on the node already, less the rarer they are elsewhere."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    total = 0.0
    for container in containers:
        image = _normal_name(str(container.get("image") or ""))
        having = sum(image in other.images for other in places)
        total += one.images.get(image, 0) * having / len(places)
    most = _LARGE_IMAGE * max(1, len(containers))
    return MOST * (min(max(total, _SMALL_IMAGE), most) - _SMALL_IMAGE) / (most - _SMALL_IMAGE)


def _normal_name(image: str) -> str:
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"
