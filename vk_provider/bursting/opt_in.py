"""What the admission webhook does to a pod that may burst: a JSON patch, or a refusal in words.

Opted in is a pod with the label ``vk-provider.dev/burst: "true"``, or one of a namespace with it
(which pods of such a namespace are asked about is the webhook configuration's business). Applied to
its own result it changes nothing, so that the API server may call again after other webhooks.

Fed by ``controllers.webhook`` with an AdmissionReview; feeds its answer.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vk_provider.bursting import names
from vk_provider.pods.types import Json
from vk_provider.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, tolerates

BURST = names.BURST_LABEL
PROVIDER = "vk-provider"
EVICT = "descheduler.alpha.kubernetes.io/evict"
PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
VIRTUAL: Json = {"key": names.TYPE_LABEL, "operator": "NotIn", "values": [names.TYPE_VALUE]}

DEFAULT_TOLERATION_SECONDS = 300
"""What the API server's own admission gives to pods that say nothing; it runs before us."""
OUTAGE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

_NO_WAY_HOME = "nothing could ever bring it home"
_THROUGH = "it would go out through a closed gate"
_SHUT = "it would be bound to a node whose door is closed"


def _repels(key: str, value: str) -> Json:
    return {"key": key, "value": value, "effect": NO_SCHEDULE}


CLOSED: Sequence[tuple[Json, str]] = (
    (_repels(names.GATE_TAINT, "hold"), _THROUGH),
    (_repels(names.GATE_TAINT, "return"), _NO_WAY_HOME),
    *(
        (_repels(names.UNAVAILABLE_TAINT, reason), _SHUT)
        for reason in ("capacity", "denied", "budget", "outage")
    ),
    (
        {"key": names.PREFER_HOME_TAINT, "value": "", "effect": PREFER_NO_SCHEDULE},
        "home would not be preferred",
    ),
)
"""Taints that no pod that bursts may tolerate, and what happens if it does."""

WANTED: Sequence[Json] = (
    {
        "key": names.PROVIDER_TAINT,
        "operator": "Equal",
        "value": PROVIDER,
        "effect": NO_SCHEDULE,
    },
    {
        "key": names.GPU_HEALTH_TAINT,
        "operator": "Equal",
        "value": names.TRAINING_UNFIT,
        "effect": NO_SCHEDULE,
    },
)
"""What lets a pod onto our nodes, and onto home GPUs that are good enough for inference alone."""


@dataclass(frozen=True, slots=True)
class OptInRules:
    """How pods are changed.

    ``home`` are the labels of home nodes (empty: every node that is not virtual). A toleration of
    everything is refused, or with ``narrow_to`` (not None) replaced by one per taint key of it.
    ``outage_seconds`` is how long a pod stays on a node that does not answer; None leaves it.
    ``mark_evictable`` lets deschedulers move pods whose volumes would protect them.
    """

    home: Mapping[str, str] = field(default_factory=dict)
    training_classes: frozenset[str] = frozenset({"training"})
    narrow_to: tuple[str, ...] | None = None
    outage_seconds: int | None = 900
    mark_evictable: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """``patch`` is empty where nothing is to be done; ``refusal`` says what is wrong."""

    patch: tuple[Json, ...] = ()
    refusal: str | None = None
    warnings: tuple[str, ...] = ()


LEFT_ALONE = Decision()


def review(request: Json, rules: OptInRules, *, by_namespace: bool) -> dict[str, Any]:
    """The AdmissionReview that answers one. ``by_namespace``: the namespace carries the label.

    Raises:
        ValueError: it is no AdmissionReview of version v1 about a pod.
    """
    question = request.get("request")
    if request.get("apiVersion") != "admission.k8s.io/v1" or not isinstance(question, Mapping):
        raise ValueError("found no AdmissionReview, allowed: kind AdmissionReview of version v1")
    pod = question.get("object")
    if not isinstance(pod, Mapping) or not isinstance(pod.get("spec"), Mapping):
        raise ValueError("request.object: found no pod, allowed: a Pod that is being created")
    if (problem := next(_misshapen(pod), None)) is not None:
        raise ValueError(f"request.object.{problem}")
    decision = decide(pod, rules, by_namespace=by_namespace)
    answer: dict[str, Any] = {"uid": str(question.get("uid", "")), "allowed": True}
    if decision.refusal is not None:
        status = {"code": 422, "reason": "Invalid", "message": decision.refusal}
        answer.update(allowed=False, status=status)
    elif decision.patch:
        text = json.dumps(decision.patch).encode()
        answer.update(patchType="JSONPatch", patch=base64.b64encode(text).decode())
    if decision.warnings:
        answer["warnings"] = list(decision.warnings)
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}


def _misshapen(pod: Json) -> Iterator[str]:
    """What is read of a pod and has another type than the API's: an API server sends nothing of
    the kind, and whoever else asks gets a sentence. From the outside in, as one is read."""
    for path, kind in _SHAPE.items():
        value: Any = pod
        for key in path.split("."):
            value = value.get(key) if value is not None else None
        if value is None:
            continue
        entries = value if isinstance(value, list) else ()
        if not isinstance(value, kind) or not all(isinstance(each, dict) for each in entries):
            yield f"{path}: found no {_WORDS[kind]}, allowed: one"


_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WORDS: Mapping[type, str] = {dict: "object", list: "list of objects", str: "text"}
_SHAPE: Mapping[str, type] = {
    "metadata": dict,
    "metadata.labels": dict,
    "metadata.annotations": dict,
    "metadata.ownerReferences": list,
    "spec.priorityClassName": str,
    "spec.tolerations": list,
    "spec.volumes": list,
    "spec.affinity": dict,
    "spec.affinity.nodeAffinity": dict,
    f"spec.affinity.nodeAffinity.{_PREFERRED}": list,
}


def decide(pod: Json, rules: OptInRules, *, by_namespace: bool = False) -> Decision:
    """What becomes of one pod that is being created."""
    metadata, spec = pod.get("metadata") or {}, pod["spec"]
    own = (metadata.get("labels") or {}).get(BURST)
    if own is not None and own != "true":
        return LEFT_ALONE
    if own is None and not by_namespace:
        return LEFT_ALONE
    if _owner_kind(metadata) == "DaemonSet":
        return LEFT_ALONE
    if spec.get("priorityClassName") in rules.training_classes:
        # A namespace is a broad brush; a label on the pod itself is a contradiction.
        return LEFT_ALONE if own is None else Decision(refusal=_training(spec))
    tolerations, refusal, notes = _without_holes(spec.get("tolerations") or (), rules)
    if refusal is not None:
        return Decision(refusal=refusal)
    wanted = _with_outages(_with_wanted(tolerations), rules.outage_seconds)
    patch = [
        *_label(metadata),
        *_evictable(metadata, rules),
        *_tolerations(spec, wanted),
        *_affinity(spec, rules.home),
    ]
    return Decision(tuple(patch), None, (*notes, *_warnings(metadata, spec)))


def _training(spec: Json) -> str:
    name = spec["priorityClassName"]
    return (
        f'metadata.labels[{BURST}]: found "true" on a pod of the training priority class "{name}" '
        "(spec.priorityClassName), allowed: one of the two: training that may go outside never "
        "preempts anybody, and so never gets the home GPUs"
    )


def _without_holes(
    tolerations: Sequence[Json], rules: OptInRules
) -> tuple[list[Json], str | None, list[str]]:
    """The tolerations that may stay, or why none may, and what was done about the others."""
    kept: list[Json] = []
    notes: list[str] = []
    for index, toleration in enumerate(tolerations):
        why = next((why for taint, why in CLOSED if tolerates(toleration, taint)), None)
        if why is None:
            kept.append(toleration)
            continue
        found = f"spec.tolerations[{index}]: found {_shown(toleration)}, which tolerates "
        if rules.narrow_to is None:
            return [], f"{found}{_what(toleration)}: {why}; allowed: {_ADVICE}", []
        # Who names one of our keys meant that one alone, and gets nothing in its place.
        keys = () if toleration.get("key") else rules.narrow_to
        kept += [{"key": key, "operator": "Exists"} for key in keys]
        instead = f"replaced by tolerations of {', '.join(keys)}" if keys else "removed"
        notes.append(f"{found}{_what(toleration)}: {instead}: {why}")
    return kept, None, notes


_ADVICE = 'tolerations that name their key, such as {key: "nvidia.com/gpu", operator: "Exists"}'


def _shown(toleration: Json) -> str:
    return json.dumps(dict(toleration))


def _what(toleration: Json) -> str:
    return toleration.get("key") or "every taint"


def _with_wanted(tolerations: Sequence[Json]) -> list[Json]:
    result = list(tolerations)
    for wanted in WANTED:
        if not any(tolerates(one, wanted) for one in result):
            result.append(wanted)
    return result


def _with_outages(tolerations: Sequence[Json], seconds: int | None) -> list[Json]:
    """Our process may be away for longer than five minutes; the pods outside run on meanwhile.

    What a person chose stays; only the API server's own default, or nothing, is replaced.
    """
    if seconds is None:
        return list(tolerations)
    result = list(tolerations)
    for key in OUTAGE_TAINTS:
        taint = {"key": key, "effect": NO_EXECUTE}
        ours = {
            "key": key,
            "operator": "Exists",
            "effect": NO_EXECUTE,
            "tolerationSeconds": seconds,
        }
        places = [index for index, one in enumerate(result) if tolerates(one, taint)]
        if not places:
            result.append(ours)
        elif result[places[0]] == {**ours, "tolerationSeconds": DEFAULT_TOLERATION_SECONDS}:
            result[places[0]] = ours
    return result


def _label(metadata: Json) -> Iterator[Json]:
    """The gate, the descheduler and the bill look at the pod, not at its namespace."""
    labels = metadata.get("labels")
    if labels is None:
        yield {"op": "add", "path": "/metadata/labels", "value": {BURST: "true"}}
    elif BURST not in labels:
        yield {"op": "add", "path": f"/metadata/labels/{_escaped(BURST)}", "value": "true"}


def _evictable(metadata: Json, rules: OptInRules) -> Iterator[Json]:
    """A pod that nobody would make again is not marked: moving it would be losing it."""
    annotations = metadata.get("annotations")
    if not rules.mark_evictable or not _owner_kind(metadata):
        return
    if annotations is None:
        yield {"op": "add", "path": "/metadata/annotations", "value": {EVICT: "true"}}
    elif EVICT not in annotations and PREFER_NO_EVICTION not in annotations:
        yield {"op": "add", "path": f"/metadata/annotations/{_escaped(EVICT)}", "value": "true"}


def _tolerations(spec: Json, wanted: Sequence[Json]) -> Iterator[Json]:
    """The whole list: indexes could mean another entry after another webhook's patch."""
    if wanted != list(spec.get("tolerations") or ()):
        yield {"op": "add", "path": "/spec/tolerations", "value": list(wanted)}


def _affinity(spec: Json, home: Mapping[str, str]) -> Iterator[Json]:
    """A preference for home of the greatest weight, unless the very same is there already."""
    expressions: list[Json] = [
        {"key": key, "operator": "In", "values": [value]} for key, value in sorted(home.items())
    ] or [VIRTUAL]
    term = {"weight": 100, "preference": {"matchExpressions": expressions}}
    affinity = spec.get("affinity") or {}
    node = affinity.get("nodeAffinity") or {}
    preferred = node.get(_PREFERRED) or []
    if term in preferred:
        return
    path = "/spec/affinity"
    if not affinity:
        yield {"op": "add", "path": path, "value": {"nodeAffinity": {_PREFERRED: [term]}}}
    elif not node:
        yield {"op": "add", "path": f"{path}/nodeAffinity", "value": {_PREFERRED: [term]}}
    else:
        value = [*preferred, term]
        yield {"op": "add", "path": f"{path}/nodeAffinity/{_PREFERRED}", "value": value}


def _warnings(metadata: Json, spec: Json) -> Iterator[str]:
    """What will keep the pod from coming home, though nothing forbids it."""
    if not _owner_kind(metadata):
        yield (
            "metadata.ownerReferences: found no controller: nobody makes this pod again after it "
            "was evicted or failed, so it is never brought home; use a Deployment"
        )
    if PREFER_NO_EVICTION in (metadata.get("annotations") or {}):
        yield f"metadata.annotations[{PREFER_NO_EVICTION}]: the pod is never brought home"
    for index, volume in enumerate(spec.get("volumes") or ()):
        if "persistentVolumeClaim" in volume:
            yield f"spec.volumes[{index}]: a claim protects the pod from being brought home"
        elif "hostPath" in volume:
            yield f"spec.volumes[{index}]: a path of a home node does not exist outside"


def _owner_kind(metadata: Json) -> str:
    """The kind of the pod's controller; empty without one."""
    owners = metadata.get("ownerReferences") or ()
    return next((str(one.get("kind", "")) for one in owners if one.get("controller")), "")


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
