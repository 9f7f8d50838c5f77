"""API objects become views. Pure.

Fed by ``controllers.cluster_view``; feeds :mod:`vk_provider.bursting.picture`. An object that is
odd (a quantity that is none, a condition without its type) gives a modest view, never a fault: the
API server has checked what matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from vk_provider.bursting import names
from vk_provider.bursting.picture import HomeNode, Owner, PodView, VirtualNode, WorkloadView
from vk_provider.pods.types import Json
from vk_provider.quantities import parse, pod_requests
from vk_provider.taints import Taint, read_taint, read_toleration

_KEPT_ANNOTATIONS = (names.GPU_HEALTH_SET_BY,)


def node_view(node: Json, resource: str) -> HomeNode | VirtualNode:
    """A node of ours if it says that it is virtual, else a home node (perhaps without GPUs)."""
    metadata, spec, status = _parts(node)
    labels = mapping(metadata, "labels")
    annotations = mapping(metadata, "annotations")
    taints = tuple(read_taint(one) for one in _items(spec, "taints"))
    ready = _condition(status, "Ready").get("status") == "True"
    if labels.get(names.TYPE_LABEL) == names.TYPE_VALUE or _value(taints, names.PROVIDER_TAINT):
        return VirtualNode(
            name=metadata.get("name", ""),
            uid=metadata.get("uid", ""),
            gpus=_whole(mapping(status, "capacity").get(resource)),
            is_ready=ready,
            is_gated=annotations.get(names.GATE_MANAGED) == "true",
            gate=_value(taints, names.GATE_TAINT),
            unavailable=_value(taints, names.UNAVAILABLE_TAINT),
            usd_per_hour=_number(annotations.get(names.USD_PER_HOUR)),
            running=int(_number(annotations.get(names.RUNNING_INSTANCES)) or 0),
            gate_state=annotations.get(names.GATE_STATE),
            gate_override=annotations.get(names.GATE_OVERRIDE),
            heartbeat=annotations.get(names.GATE_HEARTBEAT),
            labels=dict(labels),
            taints=taints,
        )
    return HomeNode(
        name=metadata.get("name", ""),
        uid=metadata.get("uid", ""),
        gpus=_whole(mapping(status, "allocatable").get(resource)),
        is_ready=ready,
        is_cordoned=bool(spec.get("unschedulable")),
        gpu_health=_value(taints, names.GPU_HEALTH_TAINT),
        labels=dict(labels),
        taints=taints,
        annotations={key: annotations[key] for key in _KEPT_ANNOTATIONS if key in annotations},
    )


def pod_view(pod: Json, resource: str) -> PodView:
    """One pod."""
    metadata, spec, status = _parts(pod)
    scheduled, ready = _condition(status, "PodScheduled"), _condition(status, "Ready")
    is_waiting = scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable"
    is_ready = ready.get("status") == "True"
    return PodView(
        uid=metadata.get("uid", ""),
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        node=spec.get("nodeName") or "",
        gpus=_pod_gpus(pod, resource),
        phase=status.get("phase") or "Pending",
        is_ready=is_ready,
        ready_since=_since(ready, "True"),
        unready_since=_since(ready, "False"),
        created_at=moment(metadata.get("creationTimestamp")),
        scheduled_at=_since(scheduled, "True"),
        unschedulable_since=_since(scheduled, "False") if is_waiting else None,
        unschedulable_why=str(scheduled.get("message") or "") if is_waiting else "",
        evicted_at=_evicted_at(metadata),
        owner=_owner(metadata),
        priority=int(spec.get("priority") or 0),
        priority_class=spec.get("priorityClassName") or "",
        deletion_cost=mapping(metadata, "annotations").get(names.DELETION_COST),
        labels=dict(mapping(metadata, "labels")),
        node_selector=dict(mapping(spec, "nodeSelector")),
        tolerations=tuple(read_toleration(one) for one in _items(spec, "tolerations")),
    )


def workload_view(workload: Json, resource: str) -> WorkloadView:
    """One Kueue Workload, of any served version."""
    metadata, spec, status = _parts(workload)
    sets = list(_items(spec, "podSets"))
    shapes = [_pod_gpus(mapping(one, "template"), resource) for one in sets]
    counts = [int(one.get("count", 1)) for one in sets]
    templates = [_parts(mapping(one, "template")) for one in sets]
    checks = {
        one.get("name", ""): one.get("state", "") for one in _items(status, "admissionChecks")
    }
    return WorkloadView(
        uid=metadata.get("uid", ""),
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        queue=str(spec.get("queueName") or ""),
        cluster_queue=str(mapping(status, "admission").get("clusterQueue") or ""),
        gpus=sum(gpus * count for gpus, count in zip(shapes, counts, strict=True)),
        pod_gpus=tuple(shapes),
        priority=int(spec.get("priority") or 0),
        priority_classes=frozenset(
            str(pod["priorityClassName"]) for _, pod, _ in templates if pod.get("priorityClassName")
        ),
        is_active=spec.get("active") is not False,
        is_admitted=_condition(status, "Admitted").get("status") == "True",
        has_quota=_condition(status, "QuotaReserved").get("status") == "True",
        is_finished=_condition(status, "Finished").get("status") == "True",
        is_inference=any(
            mapping(head, "labels").get(names.BURST_LABEL) == "true" for head, _, _ in templates
        ),
        wants_topology=any(one.get("topologyRequest") for one in sets),
        created_at=moment(metadata.get("creationTimestamp")),
        owner=_owner(metadata),
        checks=checks,
        checks_since={
            one["name"]: since
            for one in _items(status, "admissionChecks")
            if one.get("name") and (since := moment(one.get("lastTransitionTime")))
        },
        pod_counts=tuple(counts),
        pending_why=_why_pending(status),
    )


def _why_pending(status: Json) -> str:
    reserved = _condition(status, "QuotaReserved")
    return str(reserved.get("message") or "") if reserved.get("status") == "False" else ""


def moment(text: Any) -> datetime | None:
    """A time of the API server; None for what is none."""
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _parts(obj: Json) -> tuple[Json, Json, Json]:
    return mapping(obj, "metadata"), mapping(obj, "spec"), mapping(obj, "status")


def mapping(parent: Json, key: str) -> Json:
    """The object under ``key``; an empty one where there is none."""
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


def _items(parent: Json, key: str) -> Iterable[Json]:
    value = parent.get(key)
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _condition(status: Json, kind: str) -> Json:
    return next((one for one in _items(status, "conditions") if one.get("type") == kind), {})


def _since(condition: Json, status: str) -> datetime | None:
    held = condition.get("status") == status
    return moment(condition.get("lastTransitionTime")) if held else None


def _evicted_at(metadata: Json) -> datetime | None:
    """A deletionTimestamp lies in the future by the grace that was granted."""
    ends = moment(metadata.get("deletionTimestamp"))
    grace = metadata.get("deletionGracePeriodSeconds") or 0
    return ends if ends is None else datetime.fromtimestamp(ends.timestamp() - float(grace), UTC)


def _owner(metadata: Json) -> Owner | None:
    for one in _items(metadata, "ownerReferences"):
        if one.get("controller"):
            return Owner(one.get("kind", ""), one.get("name", ""), one.get("uid", ""))
    return None


def _value(taints: Iterable[Taint], key: str) -> str | None:
    return next((taint.value for taint in taints if taint.key == key), None)


def _pod_gpus(pod: Json, resource: str) -> int:
    try:
        return math.ceil(pod_requests(pod).get(resource, 0))
    except ValueError:
        return 0


def _whole(quantity: Any) -> int:
    try:
        return 0 if quantity is None else math.floor(parse(quantity))
    except ValueError:
        return 0


def _number(text: Any) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
