"""API objects become views: what is read, and that odd objects hurt nobody."""

from datetime import UTC, datetime
from typing import Any

from vk_provider.bursting import names
from vk_provider.bursting.picture import HomeNode, Owner, VirtualNode
from vk_provider.bursting.reading import (
    moment,
    node_view,
    pod_view,
    workload_view,
)
from vk_provider.taints import Taint, Toleration

GPU = "nvidia.com/gpu"
AT = "2026-01-01T10:00:00Z"
MOMENT = datetime(2026, 1, 1, 10, tzinfo=UTC)
OWNER = {"kind": "ReplicaSet", "name": "chat", "uid": "rs", "controller": True}


def condition(kind: str, status: str, **more: str) -> dict[str, str]:
    """A condition."""
    return {"type": kind, "status": status, "lastTransitionTime": AT} | more


def node(**spec: Any) -> dict[str, Any]:
    """A home node with eight GPUs."""
    return {
        "metadata": {"name": "n", "uid": "u", "labels": {"pool": "home"}},
        "spec": spec,
        "status": {
            "allocatable": {GPU: "8"},
            "capacity": {GPU: "20"},
            "conditions": [condition("Ready", "True")],
        },
    }


def pod(status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """A pod that asks for two GPUs."""
    limits = {"limits": {GPU: "2"}}
    return {
        "metadata": {"name": "p", "namespace": "web", "uid": "u"} | metadata,
        "spec": {"containers": [{"name": "c", "resources": limits}]},
        "status": status or {},
    }


def test_a_home_node_is_read() -> None:
    """With what it gives, its health and whose that is."""
    body = node(
        unschedulable=True,
        taints=[{"key": names.GPU_HEALTH_TAINT, "value": "drain", "effect": "NoSchedule"}],
    )
    body["metadata"]["annotations"] = {names.GPU_HEALTH_SET_BY: "us", "other": "x"}

    found = node_view(body, GPU)

    assert isinstance(found, HomeNode)
    assert (found.name, found.gpus, found.is_ready, found.is_cordoned) == ("n", 8, True, True)
    assert found.gpu_health == "drain"
    assert found.annotations == {names.GPU_HEALTH_SET_BY: "us"}
    assert found.taints == (Taint(names.GPU_HEALTH_TAINT, "drain", "NoSchedule"),)


def test_a_virtual_node_is_read() -> None:
    """By its type or by its taint; its price and its gate are on it."""
    body = node(taints=[{"key": names.GATE_TAINT, "value": "hold", "effect": "NoSchedule"}])
    body["metadata"]["labels"] = {"type": "virtual-kubelet"}
    body["metadata"]["annotations"] = {
        names.USD_PER_HOUR: "3.50",
        names.RUNNING_INSTANCES: "2",
        names.GATE_MANAGED: "true",
        names.GATE_STATE: "{}",
        names.GATE_HEARTBEAT: AT,
    }

    found = node_view(body, GPU)

    assert isinstance(found, VirtualNode)
    assert (found.gpus, found.gate, found.unavailable) == (20, "hold", None)
    assert found.is_gated
    assert (found.usd_per_hour, found.running) == (3.5, 2)
    assert (found.gate_state, found.heartbeat) == ("{}", AT)
    tainted = node(taints=[{"key": names.PROVIDER_TAINT, "value": "any", "effect": "NoSchedule"}])
    assert isinstance(node_view(tainted, GPU), VirtualNode)


def test_a_waiting_pod_is_read() -> None:
    """Since when, and what the scheduler said."""
    waits = condition("PodScheduled", "False", reason="Unschedulable", message="full")
    found = pod_view(pod({"conditions": [waits]}, ownerReferences=[OWNER]), GPU)

    assert (found.unschedulable_since, found.unschedulable_why) == (MOMENT, "full")
    assert (found.ready_since, found.unready_since) == (None, None)
    assert (found.gpus, found.node, found.phase) == (2, "", "Pending")
    assert found.owner == Owner("ReplicaSet", "chat", "rs")


def test_a_gated_pod_does_not_wait() -> None:
    """Kueue's pods are SchedulingGated, never Unschedulable."""
    gated = condition("PodScheduled", "False", reason="SchedulingGated")

    assert not pod_view(pod({"conditions": [gated]}), GPU).is_unschedulable


def test_a_running_pod_is_read() -> None:
    """When it was placed and when it was ready."""
    body = pod(
        {
            "phase": "Running",
            "conditions": [
                condition("PodScheduled", "True"),
                condition("Ready", "True"),
                condition("DisruptionTarget", "True", reason="EvictionByEvictionAPI"),
            ],
        },
        creationTimestamp=AT,
        labels={"app": "chat"},
        annotations={names.DELETION_COST: "-100"},
    )
    body["spec"] |= {
        "nodeName": "n",
        "priority": 7,
        "priorityClassName": "inference",
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "k", "value": "v", "effect": "NoSchedule"}, {"operator": "Exists"}],
    }

    found = pod_view(body, GPU)

    assert (found.node, found.is_ready) == ("n", True)
    assert found.created_at == found.scheduled_at == found.ready_since == MOMENT
    body["status"]["conditions"][1]["status"] = "False"
    assert pod_view(body, GPU).unready_since == MOMENT
    assert (found.priority, found.priority_class, found.deletion_cost) == (7, "inference", "-100")
    assert (found.labels, found.node_selector) == ({"app": "chat"}, {"a": "b"})
    assert found.tolerations == (
        Toleration("k", "Equal", "v", "NoSchedule"),
        Toleration("", "Exists"),
    )


def test_an_eviction_was_asked_for_before_its_grace() -> None:
    """A deletionTimestamp lies in the future."""
    body = pod(deletionTimestamp="2026-01-01T10:00:30Z", deletionGracePeriodSeconds=30)

    assert pod_view(body, GPU).evicted_at == MOMENT
    assert pod_view(pod(deletionTimestamp=AT), GPU).evicted_at == MOMENT


def test_a_workload_is_read() -> None:
    """GPUs of all its pods, its queue, its checks and why it waits."""
    template = pod(labels=None)
    template["spec"]["priorityClassName"] = "training"
    body = {
        "metadata": {"uid": "w", "name": "job", "namespace": "ml", "creationTimestamp": AT},
        "spec": {
            "queueName": "q",
            "priority": 5,
            "podSets": [{"count": 3, "template": template, "topologyRequest": {"required": "x"}}],
        },
        "status": {
            "admission": {"clusterQueue": "cq"},
            "conditions": [condition("QuotaReserved", "False", message="no room")],
            "admissionChecks": [
                {"name": "c", "state": "Pending", "lastTransitionTime": AT},
                {"name": "d", "state": "Ready"},
            ],
        },
    }

    found = workload_view(body, GPU)

    assert (found.gpus, found.pod_gpus, found.pod_counts) == (6, (2,), (3,))
    assert (found.queue, found.cluster_queue, found.priority) == ("q", "cq", 5)
    assert found.priority_classes == {"training"}
    assert found.wants_topology
    assert (found.checks, found.checks_since) == ({"c": "Pending", "d": "Ready"}, {"c": MOMENT})
    assert (found.pending_why, found.is_waiting, found.is_inference) == ("no room", True, False)


def test_a_workload_of_inference_is_known_by_its_label() -> None:
    """And one without pod sets asks for nothing."""
    template = pod(labels={names.BURST_LABEL: "true"})
    found = workload_view({"spec": {"active": False, "podSets": [{"template": template}]}}, GPU)

    assert (found.is_inference, found.is_active, found.gpus) == (True, False, 2)
    assert workload_view({}, GPU).gpus == 0


def test_odd_objects_give_modest_views() -> None:
    """The API server has checked what matters."""
    odd = {"metadata": [], "spec": {"containers": [{"resources": {"requests": {GPU: "many"}}}]}}
    body = node()
    body["status"]["allocatable"] = {GPU: "eight"}
    body["status"]["conditions"] = "none"
    virtual = node()
    virtual["metadata"] |= {
        "labels": {"type": "virtual-kubelet"},
        "annotations": {names.USD_PER_HOUR: "?"},
    }
    nobody = pod(ownerReferences=[{"kind": "ReplicaSet", "name": "x", "uid": "y"}])

    assert pod_view(odd, GPU).gpus == 0
    assert pod_view(nobody, GPU).owner is None
    home = node_view(body, GPU)
    assert (home.gpus, home.is_ready) == (0, False)
    outside = node_view(virtual, GPU)
    assert isinstance(outside, VirtualNode)
    assert outside.usd_per_hour is None
    assert node_view({}, GPU).gpus == 0


def test_times_without_a_zone_are_utc() -> None:
    """And what is no time is none."""
    assert moment("2026-01-01T10:00:00") == MOMENT
    assert moment("soon") is None
    assert moment(None) is None
