"""Pods outside that the descheduler would never bring home, and why. Pure.

Fed by ``doctor.descheduler`` with the pods on virtual nodes and what protects them; feeds
``doctor.report``. What it checks are the evictor's own protections, in its own order, and then the
API server's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vk_provider.bursting import names
from vk_provider.bursting.checkup import Advice, Level
from vk_provider.bursting.descheduler_homecoming import minutes
from vk_provider.bursting.descheduler_policy import selects
from vk_provider.pods.types import Json
from vk_provider.taints import tolerates

SYSTEM_CRITICAL = 2_000_000_000
EVICT_ANNOTATION = "descheduler.alpha.kubernetes.io/evict"
PREFER_NOT_ANNOTATION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_RETURNING = {"key": names.GATE_TAINT, "value": "return", "effect": "NoSchedule"}
_OVER = ("Succeeded", "Failed")
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What decides beside the pod itself: the evictor's arguments, budgets and home nodes.

    ``threshold`` is the priority from which on pods stay. ``budgets`` are PodDisruptionBudgets.
    ``home`` are the labels of the home nodes. ``owned`` counts the pods of each owner's UID.
    """

    evictor: Json
    threshold: int = SYSTEM_CRITICAL
    budgets: Sequence[Json] = ()
    home: Sequence[Mapping[str, str]] = ()
    owned: Mapping[str, int] = field(default_factory=dict)


def stuck(pods: Sequence[Json], around: Surroundings) -> list[Advice]:
    """A line for each reason and owner, with the pods that it keeps outside."""
    kept: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for pod in pods:
        if pod.get("status", {}).get("phase") in _OVER or "deletionTimestamp" in pod["metadata"]:
            continue
        for why, remedy in reasons(pod, around):
            kept[_owner(pod), why, remedy].append(pod["metadata"]["name"])
    return [
        Advice(Level.WARNING, owner, f"never comes home ({_few(some)}): {why}", remedy)
        for (owner, why, remedy), some in sorted(kept.items())
    ]


def reasons(pod: Json, around: Surroundings) -> Iterator[tuple[str, str]]:
    """Why this pod would stay, and what to do about it; nothing where it would come."""
    annotations = pod["metadata"].get("annotations") or {}
    if EVICT_ANNOTATION not in annotations:
        yield from _of_the_owner(pod, around)
        yield from _of_the_choice(pod, annotations, around)
        yield from _of_the_volumes(pod, around.evictor)
        yield from _of_the_start(pod, around.evictor)
    if any(tolerates(one, _RETURNING) for one in pod["spec"].get("tolerations") or ()):
        what = f"it tolerates {names.GATE_TAINT}, so its node violates nothing"
        yield what, "narrow its tolerations to virtual-kubelet.io/provider"
    yield from _of_the_places(pod, around.home)
    yield from _of_the_budgets(pod, around.budgets)


def _of_the_owner(pod: Json, around: Surroundings) -> Iterator[tuple[str, str]]:
    owners = pod["metadata"].get("ownerReferences") or ()
    if not owners:
        yield "it has no owner that would make it again", "run it by a Deployment"
    if any(owner.get("kind") == "DaemonSet" for owner in owners):
        yield "a DaemonSet's pod is protected", f"keep DaemonSets off {names.TYPE_VALUE} nodes"
    least = around.evictor.get("minReplicas") or 0
    counts = [around.owned.get(owner.get("uid", ""), 0) for owner in owners]
    if least > 1 and counts and max(counts) < least:
        what = f"its owner has {max(counts)} of the {least} replicas that minReplicas asks for"
        yield what, f"run at least {least} replicas"


def _of_the_choice(
    pod: Json, annotations: Mapping[str, str], around: Surroundings
) -> Iterator[tuple[str, str]]:
    labels = pod["metadata"].get("labels") or {}
    if not selects(around.evictor.get("labelSelector"), labels):
        what = "its labels do not match the policy's labelSelector"
        yield what, f'label its template {names.BURST_LABEL}: "true"'
    priority = pod["spec"].get("priority") or 0
    if priority >= around.threshold:
        what = f"its priority {priority} is not below the policy's threshold {around.threshold}"
        yield what, "give it a lower priorityClassName"
    is_obeyed = around.evictor.get("noEvictionPolicy") == "Mandatory"
    if is_obeyed and PREFER_NOT_ANNOTATION in annotations:
        yield f"it is annotated {PREFER_NOT_ANNOTATION}", "remove the annotation"
    if MIRROR_ANNOTATION in annotations:
        yield "it is a mirror of a static pod", "run it by a Deployment"


def _of_the_volumes(pod: Json, evictor: Json) -> Iterator[tuple[str, str]]:
    protections = evictor.get("podProtections") or {}
    disabled = protections.get("defaultDisabled") or ()
    volumes = pod["spec"].get("volumes") or ()
    is_local = any("emptyDir" in volume or "hostPath" in volume for volume in volumes)
    is_free = "PodsWithLocalStorage" in disabled or evictor.get("evictLocalStoragePods")
    if is_local and not is_free:
        what = "its emptyDir or hostPath protects it"
        yield what, "add PodsWithLocalStorage to podProtections.defaultDisabled"
    is_protected = "PodsWithPVC" in (protections.get("extraEnabled") or ())
    if is_protected and any("persistentVolumeClaim" in volume for volume in volumes):
        yield "its PersistentVolumeClaim protects it", "remove PodsWithPVC, or its claim"


def _of_the_start(pod: Json, evictor: Json) -> Iterator[tuple[str, str]]:
    has_age = bool(minutes(str(evictor.get("minPodAge") or "0")))
    if has_age and not pod.get("status", {}).get("startTime"):
        what = "it has no status.startTime, and minPodAge protects such pods"
        yield what, "see that its node reports it; vk-provider does"


def _of_the_places(pod: Json, home: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    wanted = pod["spec"].get("nodeSelector") or {}
    fitting = [labels for labels in home if wanted.items() <= labels.items()]
    if home and not fitting:
        asked = ", ".join(f"{key}={value}" for key, value in wanted.items())
        yield f"no home node has what its nodeSelector asks for: {asked}", "widen the selector"


def _of_the_budgets(pod: Json, budgets: Sequence[Json]) -> Iterator[tuple[str, str]]:
    labels = pod["metadata"].get("labels") or {}
    covering = [
        budget
        for budget in budgets
        if budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and selects(budget["spec"].get("selector"), labels)
    ]
    if len(covering) > 1:
        found = ", ".join(sorted(budget["metadata"]["name"] for budget in covering))
        yield f"several budgets cover it ({found}): the API refuses its eviction", "keep one"
    for budget in covering:
        if _allows_nothing(budget["spec"]):
            name = budget["metadata"]["name"]
            yield f"PodDisruptionBudget {name} never allows an eviction", "set maxUnavailable: 1"


def _allows_nothing(spec: Json) -> bool:
    return str(spec.get("maxUnavailable", "")) in ("0", "0%") or spec.get("minAvailable") == "100%"


def _owner(pod: Json) -> str:
    metadata = pod["metadata"]
    owner = next(iter(metadata.get("ownerReferences") or ()), None)
    if owner is None:
        return f"{metadata['namespace']}/{metadata['name']}"
    return f"{metadata['namespace']}/{owner.get('kind', '')}/{owner.get('name', '')}"


def _few(pods: Sequence[str]) -> str:
    rest = len(pods) - _SHOWN
    shown = ", ".join(sorted(pods)[:_SHOWN])
    return f"{shown} and {rest} more" if rest > 0 else shown
