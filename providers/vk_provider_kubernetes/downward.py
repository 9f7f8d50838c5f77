"""The downward API: what home knows is home's, what only the other cluster knows is left to it.

A pod must see its own name, not its instance's. Values go into variables as text, and into files
through a ConfigMap of the pod's own, which follows when labels or annotations change.
Pure. Fed by :mod:`.environment` and :mod:`.volumes`.
"""

from __future__ import annotations

from typing import Any

from vk_provider.pods.downward import PodFields
from vk_provider.pods.lookup import Lookup
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import Json, ResolvedPod
from vk_provider_kubernetes.copies import Copies
from vk_provider_kubernetes.rules import HOST_ACCESS
from vk_provider_kubernetes.walk import Findings, sent

_POD_ADDRESS = ("status.podIP", "status.podIPs")
"""What has a meaning inside the container only as the other cluster says it."""
_HOST_ADDRESS = ("status.hostIP", "status.hostIPs")


def is_remote(field_path: str, switches: frozenset[str] = frozenset()) -> bool:
    """Whether a field is left to the other cluster's kubelet.

    Who may use its node's network and files looks for that node at the host's address; for all
    others the host is the virtual node.
    """
    is_of_host = field_path in _HOST_ADDRESS and HOST_ACCESS in switches
    return field_path in _POD_ADDRESS or is_of_host


def home_value(
    pod: ResolvedPod, field_path: str, switches: frozenset[str] = frozenset()
) -> str | None:
    """A field of the pod as home has it; None for one that home does not know either."""
    if is_remote(field_path, switches):
        return None
    lookup = Lookup(pod.stamp.namespace, {})
    fields = PodFields(pod.pod, pod.stamp.node_name, None, {}, lookup)
    return fields.read({"fieldRef": {"fieldPath": field_path}}, "", {})


def split(
    pod: ResolvedPod, source: Json, path: str, copies: Copies, findings: Findings
) -> list[dict[str, Any]]:
    """The sources of a projected volume that give a downward API source's files."""
    known: list[dict[str, Any]] = []
    left: list[dict[str, Any]] = []
    for index, item in mappings(source, "items"):
        file = sent(item, "DownwardAPIVolumeFile", f"{path}.items[{index}]", findings)
        field_path = text(mapping(item, "fieldRef"), "fieldPath")
        value = home_value(pod, field_path, findings.switches) if field_path else None
        if value is not None:
            known.append({**file, "key": copies.value(value)})
        else:
            left.append({**file, **({"fieldRef": dict(item["fieldRef"])} if field_path else {})})
    own = {"configMap": {"name": copies.values_name, "items": known}} if known else {}
    rest = {"downwardAPI": {"items": left}} if left else {}
    return [part for part in (own, rest) if part]
