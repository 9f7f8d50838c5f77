"""What the other cluster could carry for us: allocatable of its usable nodes minus what others use.

A sum is not a promise (eight nodes with one GPU each are no node with eight), but it moves with the
cluster. Our own instances count as room, since the virtual node counts them as its pods.
Pure. Fed by ``provider`` with Nodes and Pods; feeds the node's capacity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import Json
from vk_provider.quantities import add, parse, pod_requests, render
from vk_provider_kubernetes import stamp as marks
from vk_provider_kubernetes.config import KubernetesConfig

_OVER = ("Succeeded", "Failed")
_KEEPS_OUT = ("NoSchedule", "NoExecute")


def room(
    nodes: Iterable[Json], pods: Iterable[Json], cluster_id: str, config: KubernetesConfig
) -> Mapping[str, str]:
    """Quantities by resource; never negative."""
    usable = {
        text(mapping(node, "metadata"), "name"): node for node in nodes if _is_usable(node, config)
    }
    total = add(*(_allocatable(node) for node in usable.values()))
    foreign = [
        pod_requests(pod)
        for pod in pods
        if text(mapping(pod, "spec"), "nodeName") in usable and _is_foreign(pod, cluster_id)
    ]
    used = add(*foreign, {name: parse(amount) for name, amount in config.reserve.items()})
    return {
        name: render(max(amount - used.get(name, 0), Fraction(0)), binary=True)
        for name, amount in total.items()
    }


def _allocatable(node: Json) -> dict[str, Fraction]:
    amounts = mapping(mapping(node, "status"), "allocatable")
    return {name: parse(amount) for name, amount in amounts.items()}


def _is_usable(node: Json, config: KubernetesConfig) -> bool:
    spec = mapping(node, "spec")
    labels = mapping(mapping(node, "metadata"), "labels")
    is_ready = any(
        text(each, "type") == "Ready" and text(each, "status") == "True"
        for _, each in mappings(mapping(node, "status"), "conditions")
    )
    fits = all(labels.get(key) == value for key, value in config.node_selector.items())
    return is_ready and fits and not spec.get("unschedulable") and not _keeps_out(spec, config)


def _keeps_out(spec: Json, config: KubernetesConfig) -> bool:
    tolerated = {each.get("key") for each in config.tolerations}
    if None in tolerated:
        return False
    return any(
        text(taint, "effect") in _KEEPS_OUT and text(taint, "key") not in tolerated
        for _, taint in mappings(spec, "taints")
    )


def _is_foreign(pod: Json, cluster_id: str) -> bool:
    if text(mapping(pod, "status"), "phase") in _OVER:
        return False
    owner = marks.read(pod)
    return owner is None or owner.cluster_id != cluster_id
