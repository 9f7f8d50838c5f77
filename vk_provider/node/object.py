"""The Node object: what we register, and the status that we keep up to date.

Fed by plain values (configuration, the door, the backends' health); feeds ``loops``, which
creates and patches. ``Ready`` stays True while backends are out: the door keeps new pods away,
and an outage of an API must evict nobody.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from vk_provider.node import names
from vk_provider.node.describe import (
    BackendView,
    provider_ready,
    render_annotations,
    stale_annotations,
)
from vk_provider.node.taints import gate
from vk_provider.quantities import canonical, parse, render

Json = Mapping[str, Any]

PROVIDER_ID_SCHEME = "vk-provider"
MARK_VALUE = "vk-provider"
DECLARED_FEATURES = ("ExtendWebSocketsToKubelet",)
"""What our kubelet port can do beyond an old kubelet's, by the names of Kubernetes' features."""
_DECLARED_SINCE = (1, 36)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """What a virtual node is configured to be; constant while the process runs.

    ``api_server_version`` is the API server's ``gitVersion``: the kubelet version is derived from
    it, since version checks of a cluster read the node's as a kubelet's.
    """

    name: str
    capacity: Mapping[str, str]
    version: str
    api_server_version: str = "v1.36.0"
    cluster_id: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Json] = ()
    kubelet_port: int = 10250
    is_gated: bool = False
    """Whether its gate is moved by our controller."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """What the node's status depends on beside its configuration.

    ``in_use`` is what the pods on the node request. ``offered`` is what the backends could carry at
    most, where they know. ``headroom`` is how many more pods a half-open door lets in; 0 while it
    is closed, None while it is open. ``closed_reason`` is the taint's value, ``closed_message``
    says why, ``closed_until`` when it opens again, if known. ``budget`` says of each cap how much
    of it is spent, ``warnings`` the same of those that are nearly spent; ``spent`` is the line that
    the next process goes on with.
    """

    address: str | None = None
    backends: Sequence[BackendView] = ()
    in_use: Mapping[str, Fraction] = field(default_factory=dict)
    offered: Mapping[str, Fraction] = field(default_factory=dict)
    headroom: int | None = None
    closed_reason: str | None = None
    closed_message: str = ""
    closed_until: datetime | None = None
    budget: Sequence[str] = ()
    warnings: Sequence[str] = ()
    spent: str | None = None


def render_node(spec: NodeSpec) -> dict[str, Any]:
    """The Node to create. It carries its taints from its first moment, so that no ordinary pod
    slips onto it; a managed gate begins at hold, where its controller takes it up."""
    held = [gate("hold")] if spec.is_gated else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": spec.name,
            "labels": node_labels(spec),
            "annotations": {
                **({names.GATE_MANAGED: "true"} if spec.is_gated else {}),
                names.MANAGED_BY: MARK_VALUE,
            },
        },
        "spec": {
            "providerID": f"{PROVIDER_ID_SCHEME}://{spec.cluster_id}/{spec.name}",
            "taints": [*(dict(taint) for taint in spec.taints), *held],
        },
    }


def node_labels(spec: NodeSpec) -> dict[str, str]:
    """The labels of the node; the user's may change all but its name and what it is."""
    return {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/exclude-from-external-load-balancers": "true",
        "node.kubernetes.io/exclude-disruption": "true",
        **spec.labels,
        "kubernetes.io/hostname": spec.name,
        names.TYPE_LABEL: names.TYPE_VALUE,
    }


def is_ours(node: Json) -> bool:
    """Whether an existing Node carries our mark, so that it may be adopted. An annotation can get
    lost, which must not keep us from instances that bill; a provider ID can't be changed."""
    metadata, spec = node.get("metadata") or {}, node.get("spec") or {}
    is_marked = (metadata.get("annotations") or {}).get(names.MANAGED_BY) == MARK_VALUE
    return is_marked or str(spec.get("providerID")).startswith(f"{PROVIDER_ID_SCHEME}://")


def adoption_patch(current: Json, spec: NodeSpec) -> dict[str, Any] | None:
    """What an adopted Node lacks: labels and annotations of ours. Everything else is left; its
    taints are edited by :func:`vk_provider.node.taints.edit`."""
    wanted = render_node(spec)["metadata"]
    metadata = current.get("metadata") or {}
    wanted["annotations"] |= leftovers(current, spec)[1]
    changed = {
        name: missing
        for name in ("labels", "annotations")
        if (missing := _different(metadata.get(name) or {}, wanted[name]))
    }
    return _of_this_node(current, changed) if changed else None


def leftovers(current: Json, spec: NodeSpec) -> tuple[frozenset[str], dict[str, None]]:
    """Taints and annotations of bursting on an adopted Node that takes part in it no longer.

    A gate that we never managed is somebody's own and stays."""
    given = {taint.get("key") for taint in spec.taints}
    keys = frozenset({names.PREFER_HOME_TAINT} - given)
    metadata = current.get("metadata") or {}
    if spec.is_gated or names.GATE_MANAGED not in (metadata.get("annotations") or {}):
        return keys, {}
    return keys | {names.GATE_TAINT}, dict.fromkeys(
        (names.GATE_MANAGED, names.GATE_STATE, names.GATE_HEARTBEAT)
    )


def _different(current: Json, wanted: Json) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if current.get(name) != value}


def _of_this_node(current: Json, changed: Json) -> dict[str, Any]:
    """A patch of the metadata that is refused when the name belongs to another Node meanwhile."""
    uid = (current.get("metadata") or {}).get("uid")
    return {"metadata": {**({"uid": uid} if uid else {}), **changed}}


def annotations_patch(current: Json, view: NodeView) -> dict[str, Any] | None:
    """The annotations that ``kubectl describe node`` shows to people, where they differ; null
    removes one, also those of backends that are configured no longer."""
    found = (current.get("metadata") or {}).get("annotations") or {}
    closed = (view.closed_reason, view.closed_message, view.closed_until)
    wanted: dict[str, str | None] = {
        **dict.fromkeys(stale_annotations(found, view.backends)),
        **render_annotations(view.backends, closed),
        names.BUDGET: "; ".join(view.budget) or None,
        names.SPENT: view.spent,
    }
    changed = _different(found, wanted)
    return _of_this_node(current, {"annotations": changed}) if changed else None


def node_status(
    spec: NodeSpec, view: NodeView, now: datetime, current: Json | None = None
) -> dict[str, Any]:
    """The complete status that we want. ``current`` is the API's copy of the status: transition
    times are taken over from it while a condition's status stays."""
    capacity = {resource: canonical(amount) for resource, amount in spec.capacity.items()}
    return {
        "capacity": capacity,
        "allocatable": _allocatable(capacity, view),
        "conditions": _conditions(view, now, (current or {}).get("conditions") or []),
        "addresses": _addresses(view),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": spec.kubelet_port}},
        "nodeInfo": _node_info(spec),
        **_declared(spec.api_server_version),
    }


def _declared(api_server_version: str) -> dict[str, list[str]]:
    """Sorted, else the API server refuses the status. From 1.36 on it hands a client's WebSocket
    through to a node that says so; before, the field is unknown or without use."""
    found = re.match(r"v?(\d+)\.(\d+)", api_server_version)
    known = found is not None and (int(found[1]), int(found[2])) >= _DECLARED_SINCE
    return {"declaredFeatures": list(DECLARED_FEATURES)} if known else {}


def _allocatable(capacity: Mapping[str, str], view: NodeView) -> dict[str, str]:
    """Never more than the backends offer; while the door is not open, lowered in ``pods`` to what
    is in use plus the head-room: exact, and it moves nobody."""
    limits = {name: amount for name, amount in view.offered.items() if name in capacity}
    if view.headroom is not None and "pods" in capacity:
        room = view.in_use.get("pods", Fraction(0)) + view.headroom
        limits["pods"] = min(room, limits.get("pods", room))
    lowered = {
        name: render(limit, binary=name in _BINARY)
        for name, limit in limits.items()
        if limit < parse(capacity[name])
    }
    return {**capacity, **lowered}


_BINARY = frozenset({"memory", "ephemeral-storage"})


def _addresses(view: NodeView) -> list[dict[str, str]]:
    """Never a Hostname: the API server would prefer it to the IP, and it must then resolve."""
    return [{"type": "InternalIP", "address": view.address}] if view.address else []


def _node_info(spec: NodeSpec) -> dict[str, str]:
    labels = node_labels(spec)
    kubelet = f"{_semantic(spec.api_server_version)}-vk-provider.{spec.version}"
    return {
        "architecture": labels["kubernetes.io/arch"],
        "bootID": "",
        "containerRuntimeVersion": f"vk-provider://{spec.version}",
        "kernelVersion": "",
        "kubeProxyVersion": "",
        "kubeletVersion": kubelet,
        "machineID": spec.name,
        "operatingSystem": labels["kubernetes.io/os"],
        "osImage": f"vk-provider {spec.version}",
        "systemUUID": "",
    }


def _semantic(version: str) -> str:
    """``v1.36.3`` of ``v1.36.3-eks-1a2b3c`` or ``v1.36.3+k3s1``."""
    return version.partition("-")[0].partition("+")[0]


_HEALTHY = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("NetworkUnavailable", "RouteCreated", "the node needs no route"),
)


def _conditions(view: NodeView, now: datetime, current: Sequence[Json]) -> list[dict[str, Any]]:
    """In the kubelet's order, Ready last."""
    before = {condition.get("type"): condition for condition in current}
    ours = [(kind, "False", reason, message) for kind, reason, message in _HEALTHY]
    ours.append((names.PROVIDER_READY, *provider_ready(view.backends, view.warnings)))
    ours.append(("Ready", "True", "KubeletReady", "kubelet is posting ready status"))
    return [_condition(one, before.get(one[0]) or {}, now) for one in ours]


def _condition(one: tuple[str, str, str, str], before: Json, now: datetime) -> dict[str, Any]:
    kind, status, reason, message = one
    moment = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    is_same = before.get("status") == status
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": moment,
        "lastTransitionTime": (is_same and before.get("lastTransitionTime")) or moment,
    }
