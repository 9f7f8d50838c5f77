"""What a scoring self-test says: did home win, would it, and what is to be done if not. Pure.

Fed by ``doctor.scoring`` (where real probes went, and the objects); feeds ``doctor.report``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vk_provider.bursting import names
from vk_provider.bursting.checkup import Advice, Level
from vk_provider.bursting.node_terms import preferences
from vk_provider.bursting.opt_in import VIRTUAL, WANTED
from vk_provider.bursting.scoring import Place, Verdict
from vk_provider.pods.types import Json
from vk_provider.taints import PREFER_NO_SCHEDULE, tolerates

ABSENT_CONFIG_MAP = "vk-provider-scoring-probe-has-none"
"""No probe ever starts: a volume of it can't be filled, at home or outside."""
PROBE_LABEL = names.PREFIX + "scoring-probe"
ZONE_LABEL = "topology.kubernetes.io/zone"
HUGE = 4
"""An advertised node of more than so many times the largest at home draws pods."""
_SPREADS_BY = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class Scoring:
    """All that a self-test found. ``went`` is how many probes each node got; ``stuck`` says why a
    probe got none. ``sample`` is the pod whose like the probes are."""

    sample: Json
    places: Sequence[Place]
    went: Mapping[str, int] = field(default_factory=dict)
    stuck: Sequence[str] = ()
    verdict: Verdict | None = None


def probe(sample: Json, name: str, namespace: str, gpus: Mapping[str, str]) -> dict[str, Any]:
    """A pod that the scheduler treats like the sample and that nobody can ever start.

    It looks past the gate and the door, so that outside is a choice; it carries none of the
    sample's labels, so that no ReplicaSet adopts it; its label keeps our webhook away."""
    spec = sample.get("spec") or {}
    kept = {
        key: spec[key]
        for key in ("nodeSelector", "affinity", "schedulerName", "securityContext")
        if spec.get(key)
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {PROBE_LABEL: "true", names.BURST_LABEL: "false"},
        },
        "spec": {
            **kept,
            "tolerations": [*(spec.get("tolerations") or ()), *_LOOKS_PAST],
            "containers": [_container(one, gpus) for one in spec.get("containers") or ()],
            "volumes": [{"name": "never", "configMap": {"name": ABSENT_CONFIG_MAP}}],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
        },
    }


_LOOKS_PAST: Sequence[Json] = (
    {"key": names.GATE_TAINT, "operator": "Exists", "effect": "NoSchedule"},
    {"key": names.UNAVAILABLE_TAINT, "operator": "Exists", "effect": "NoSchedule"},
)


def _container(one: Json, gpus: Mapping[str, str]) -> dict[str, Any]:
    kept = {key: one[key] for key in ("name", "image", "securityContext") if one.get(key)}
    return {
        **kept,
        "imagePullPolicy": "Never",
        "resources": one.get("resources") or {"limits": dict(gpus)},
        "volumeMounts": [{"name": "never", "mountPath": "/vk-provider-never"}],
    }


def generic_sample(home: Mapping[str, str], gpus: Mapping[str, str]) -> dict[str, Any]:
    """A pod as the webhook makes one of a plain pod, where the cluster has none to copy."""
    expressions: list[Json] = [
        {"key": key, "operator": "In", "values": [value]} for key, value in sorted(home.items())
    ] or [VIRTUAL]
    term = {"weight": 100, "preference": {"matchExpressions": expressions}}
    return {
        "metadata": {"name": "a pod as the webhook makes it", "namespace": ""},
        "spec": {
            "tolerations": list(WANTED),
            "affinity": {
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
            },
            "containers": [
                {
                    "name": "main",
                    "image": "vk-provider/scoring-probe:none",
                    "resources": {
                        "requests": {"cpu": "4", "memory": "32Gi", **gpus},
                        "limits": dict(gpus),
                    },
                }
            ],
        },
    }


def advise(found: Scoring) -> list[Advice]:
    """Everything there is to say, in the order in which it was looked at."""
    return [
        *_placements(found),
        *_arithmetic(found),
        *_about_the_pod(found),
        *_about_the_nodes(found),
    ]


def _placements(found: Scoring) -> Iterator[Advice]:
    outside = {place.name for place in found.places if place.is_outside}
    went = Counter(found.went)
    total = sum(went.values())
    lost = {name: count for name, count in sorted(went.items()) if name in outside}
    if lost:
        where = ", ".join(f"{count} to {name}" for name, count in lost.items())
        yield Advice(
            Level.ERROR,
            "scheduler",
            f"{sum(lost.values())} of {total} probes went outside although home had room: {where}",
            "give the pods the preferred affinity and the nodes the soft taint (below)",
        )
    elif total:
        yield Advice(Level.OK, "scheduler", f"all {total} probes went home")
    else:
        what = "home has no room for a probe at the moment: only the arithmetic can be told"
        yield Advice(Level.NOTE, "scheduler", what)
    for why in sorted(set(found.stuck)):
        yield Advice(Level.WARNING, "scheduler", f"a probe found no place at all: {why}")


def _arithmetic(found: Scoring) -> Iterator[Advice]:
    verdict = found.verdict
    if verdict is None:
        what = "home or outside has no room for this pod, so nothing competes"
        yield Advice(Level.NOTE, "arithmetic", what)
        return
    for score in verdict.scores:
        what = f"home ({verdict.home}) {score.home:.0f}, outside ({verdict.outside}) "
        yield Advice(Level.NOTE, score.plugin, f"{what}{score.outside:.0f}")
    margin, worst = verdict.margin, verdict.worst_margin
    if margin <= 0:
        level, what = Level.ERROR, f"outside is ahead by {-margin:.0f}"
    elif worst <= 0:
        level = Level.WARNING
        what = (
            f"home is ahead by {margin:.0f}, but spreading replicas may give outside up to "
            f"{margin - worst:.0f}"
        )
    else:
        level, what = Level.OK, f"home is ahead by {margin:.0f}, {worst:.0f} in the worst case"
    yield Advice(level, "arithmetic", what, "" if level is Level.OK else _REMEDY)


_REMEDY = (
    "use both the soft taint (bursting.gate.enabled sets it) and a preferred node affinity for "
    "home of weight 100 (the webhook adds it)"
)


def _about_the_pod(found: Scoring) -> Iterator[Advice]:
    metadata, spec = found.sample.get("metadata") or {}, found.sample.get("spec") or {}
    subject = f"{metadata.get('namespace')}/{metadata.get('name')}".lstrip("/")
    if not preferences(found.sample):
        yield Advice(
            Level.WARNING,
            subject,
            "has no preferred node affinity: the soft taint alone can be outvoted",
            "let the webhook add it, or write it into the pod template",
        )
    soft = {"key": names.PREFER_HOME_TAINT, "value": "", "effect": PREFER_NO_SCHEDULE}
    if any(tolerates(one, soft) for one in spec.get("tolerations") or ()):
        yield Advice(
            Level.ERROR,
            subject,
            f"tolerates {names.PREFER_HOME_TAINT}: nothing makes it prefer home",
            "name the taints that it tolerates, by key and effect",
        )


def _about_the_nodes(found: Scoring) -> Iterator[Advice]:
    home = [place for place in found.places if not place.is_outside]
    for place in found.places:
        if not place.is_outside:
            continue
        if not any(taint.get("key") == names.PREFER_HOME_TAINT for taint in place.taints):
            what = f"has no taint {names.PREFER_HOME_TAINT}"
            yield Advice(Level.WARNING, place.name, what, "set bursting.gate.enabled on it")
        if place.images:
            what = f"advertises {len(place.images)} images, which draw pods that want them"
            yield Advice(Level.WARNING, place.name, what, "leave status.images empty")
        if ZONE_LABEL not in place.labels:
            what = f"has no label {ZONE_LABEL}: spreading counts it to no zone"
            yield Advice(Level.NOTE, place.name, what, "give it a zone of its own in spec.labels")
        yield from _size(place, home)


def _size(outside: Place, home: Sequence[Place]) -> Iterator[Advice]:
    for resource in _SPREADS_BY:
        largest = max((place.allocatable.get(resource, 0) for place in home), default=0)
        if largest and outside.allocatable.get(resource, 0) > HUGE * largest:
            times = float(outside.allocatable[resource] / largest)
            yield Advice(
                Level.WARNING,
                outside.name,
                f"advertises {times:.0f} times the {resource} of the largest home node: an empty "
                "giant scores best",
                f"set spec.capacity.{resource} to what may really be used",
            )
