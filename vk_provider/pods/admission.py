"""Whether the node takes a pod that is already bound to it, as a kubelet asks again on arrival.

``spec.nodeName`` bypasses the scheduler, and so the cost cap: the configured capacity, the node's
labels and its permanent taints are checked here. A door that is closed for now is not: it lowers
allocatable, never a verdict. Fed by a pod and an :class:`AdmittingNode`; a :class:`Refusal` feeds
the lifecycle. Reasons and texts are the kubelet's, since dashboards match them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from vk_provider.pods.events import FailedReason, out_of
from vk_provider.pods.node_affinity import is_selected
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import Json
from vk_provider.quantities import parse, pod_requests, render
from vk_provider.taints import REPELLING, tolerates

_PREFIX = "Pod was rejected: "
_OS_LABEL = "kubernetes.io/os"
_MILLI = Fraction(1, 1000)
_FIRST = ("pods", "cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class AdmittingNode:
    """The node as admission sees it.

    ``permanent_taints`` are JSON taints that are always there; those of the door and the gate
    refuse nobody. ``capacity`` is what is configured, ``in_use`` what the **other** pods that are
    not terminal request (including one of ``pods`` each).
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    permanent_taints: Sequence[Json] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    in_use: Mapping[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the node does not take a pod: ``status.reason`` and ``status.message``."""

    reason: str
    message: str


def admit(pod: Json, node: AdmittingNode) -> Refusal | None:
    """None if the node takes the pod, else the first reason in the kubelet's order."""
    return (
        _is_for_os(pod, node) or _fits(pod, node) or _is_wanted(pod, node) or _tolerates(pod, node)
    )


def _is_for_os(pod: Json, node: AdmittingNode) -> Refusal | None:
    wanted = text(mapping(mapping(pod, "spec"), "os"), "name")
    if wanted in ("", node.labels.get(_OS_LABEL, "linux")):
        return None
    message = f"{_PREFIX}Failed to admit pod as the OS field doesn't match node OS"
    return Refusal(FailedReason.POD_OS_NOT_SUPPORTED, message)


def _fits(pod: Json, node: AdmittingNode) -> Refusal | None:
    try:
        requests = pod_requests(pod)
    except ValueError as unreadable:
        return Refusal(
            FailedReason.UNSUPPORTED, f"{_PREFIX}spec.containers[*].resources: {unreadable}"
        )
    for resource in sorted(requests, key=_rank):
        wanted, used = requests[resource], node.in_use.get(resource, Fraction(0))
        capacity = parse(node.capacity.get(resource, "0"))
        if wanted > 0 and wanted + used > capacity:
            return _out_of(resource, (wanted, used, capacity))
    return None


def _rank(resource: str) -> tuple[int, str]:
    return (_FIRST.index(resource) if resource in _FIRST else len(_FIRST), resource)


def _out_of(resource: str, amounts: tuple[Fraction, Fraction, Fraction]) -> Refusal:
    """The kubelet's sentence; like there, cpu is counted in thousandths."""
    unit = _MILLI if resource == "cpu" else Fraction(1)
    wanted, used, capacity = (render_plain(amount / unit) for amount in amounts)
    return Refusal(
        out_of(resource),
        f"{_PREFIX}Node didn't have enough resource: {resource}, "
        f"requested: {wanted}, used: {used}, capacity: {capacity}",
    )


def render_plain(amount: Fraction) -> str:
    """A whole number as digits, anything else as a quantity."""
    return str(amount) if amount.denominator == 1 else render(amount)


def _is_wanted(pod: Json, node: AdmittingNode) -> Refusal | None:
    if is_selected(pod, node.name, node.labels):
        return None
    return Refusal(
        FailedReason.NODE_AFFINITY,
        f"{_PREFIX}Predicate NodeAffinity failed: "
        "node(s) didn't match Pod's node affinity/selector",
    )


def _tolerates(pod: Json, node: AdmittingNode) -> Refusal | None:
    tolerations = [one for _, one in mappings(mapping(pod, "spec"), "tolerations")]
    for taint in node.permanent_taints:
        if taint.get("effect") not in REPELLING:
            continue
        if not any(tolerates(toleration, taint) for toleration in tolerations):
            return Refusal(
                FailedReason.TAINT_TOLERATION,
                f"{_PREFIX}Predicate TaintToleration failed: node(s) had untolerated taint "
                f"{{{text(taint, 'key')}: {text(taint, 'value')}}}",
            )
    return None
