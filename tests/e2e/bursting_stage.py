"""Home nodes with GPUs, inference that may burst, training that pushes: for the tests of the gate.

Everything carries the stage's own pool label and priority classes, since the control plane is
shared with other tests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.workloads import Json, Workloads, deployment, pod_template
from tests.rig import identity
from tests.rig.access import ApiError
from tests.rig.control_plane import ControlPlane
from tests.rig.kwok import Stages
from tests.rig.polling import eventually

GPU = "nvidia.com/gpu"
POOL = {"pool": "gate-home"}
BURST = {"vk-provider.dev/burst": "true"}
GATE_TAINT = "vk-provider.dev/gate"
GATE_STATE = "vk-provider.dev/gate-state"
RIGHTS = identity.DEPLOY / "components" / "bursting" / "rights.yaml"
CLASSES = {"gate-inference": (1_000, "Never"), "gate-training": (100_000, "PreemptLowerPriority")}

SPEC: Json = {"bursting": {"gate": {"enabled": True, "deadAfterSeconds": 3}}}
GATE: Json = {
    "openAfterSeconds": 2,
    "scarceForSeconds": 600,
    "closeAfterSeconds": 1,
    "stableForSeconds": 2,
    "coldStartFactor": 0,
    "dwellSeconds": 1,
    "maxTransitions": 20,
    "heartbeatSeconds": 0.5,
}
QUICK_LEASE = {"leaseDurationSeconds": 3, "renewDeadlineSeconds": 2, "retryPeriodSeconds": 0.5}


def rules(**blocks: Any) -> Json:
    """The Bursting document of the stage; blocks replace its own."""
    spec = {
        "home": {"nodeSelector": POOL},
        "training": {"priorityClasses": ["gate-training"]},
        "gate": GATE,
        "leaderElection": {"namespace": identity.NAMESPACE} | QUICK_LEASE,
    }
    return {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "Bursting",
        "metadata": {"name": "default"},
        "spec": spec | blocks,
    }


async def prepare(
    bed: ControlPlane, nodes: int = 1, gpus: int = 4, stages: Stages | None = None
) -> None:
    """Rights, priority classes and home nodes."""
    await identity.install(bed)
    await bed.apply(_rights())
    for name, (value, policy) in CLASSES.items():
        await bed.apply(
            [
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                    "preemptionPolicy": policy,
                }
            ]
        )
    for number in range(nodes):
        try:
            await bed.add_home_node(f"gate-home-{number}", {GPU: str(gpus)}, POOL, stages=stages)
        except ApiError as error:
            if error.status != 409:
                raise


def _rights() -> list[Json]:
    return [one for one in yaml.safe_load_all(RIGHTS.read_text()) if one]


def inference(replicas: int, gpus: int = 1) -> Json:
    """A Deployment that prefers home and may burst."""
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": [POOL["pool"]]}]}
    template = pod_template("", labels=BURST, **_asking(gpus))
    template["spec"] |= {
        "nodeSelector": None,
        "priorityClassName": "gate-inference",
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 100, "preference": term}
                ]
            }
        },
    }
    return deployment("chat", replicas, template)


def training(gpus: int) -> Json:
    """A pod that takes whole home nodes from inference."""
    template = pod_template("", **_asking(gpus))
    template["spec"] |= {
        "nodeSelector": POOL,
        "tolerations": [],
        "priorityClassName": "gate-training",
    }
    return template


def _asking(gpus: int) -> Json:
    resources = {"requests": {GPU: str(gpus)}, "limits": {GPU: str(gpus)}}
    container = {"name": "main", "image": "registry.example/app:1", "resources": resources}
    return {"containers": [container], "terminationGracePeriodSeconds": 1}


def gate_of(node: Mapping[str, Any]) -> str | None:
    """The value of the gate's taint."""
    taints = node["spec"].get("taints") or []
    return next((taint["value"] for taint in taints if taint["key"] == GATE_TAINT), None)


def state_of(node: Mapping[str, Any]) -> Json:
    """The gate's state as it is written."""
    found: Json = json.loads(node["metadata"]["annotations"].get(GATE_STATE, "{}"))
    return found


async def gate_is(node: NodeUnderTest, value: str, seconds: float = 30.0) -> Json:
    """Wait until the gate's state has a value; return all of it."""

    async def probe() -> Json | None:
        state = state_of(await node.node())
        return state if state.get("state") == value else None

    return await eventually(probe, f"gate {value}", seconds=seconds)


async def where(workloads: Workloads, node: str) -> tuple[int, int]:
    """How many Ready inference replicas are at home, and how many on the virtual node."""
    pods = [
        pod
        for pod in await workloads.pods("app=chat")
        if "deletionTimestamp" not in pod["metadata"]
        and any(
            c["type"] == "Ready" and c["status"] == "True"
            for c in pod["status"].get("conditions", [])
        )
    ]
    outside = sum(pod["spec"].get("nodeName") == node for pod in pods)
    return len(pods) - outside, outside


async def placed(
    workloads: Workloads, node: str, wanted: tuple[int, int], seconds: float = 30.0
) -> None:
    """Wait until so many replicas are Ready at home, and so many outside."""

    async def probe() -> bool:
        return await where(workloads, node) == wanted

    await eventually(probe, f"{wanted[0]} at home and {wanted[1]} outside", seconds=seconds)


async def evict(workloads: Workloads, node: str, count: int) -> None:
    """Evict pods from a node as the descheduler would."""
    pods = [
        pod["metadata"]["name"]
        for pod in await workloads.pods("app=chat")
        if pod["spec"].get("nodeName") == node and "deletionTimestamp" not in pod["metadata"]
    ]
    for name in pods[:count]:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": workloads.namespace},
        }
        await workloads.bed.request_json("POST", workloads.path("pods", name) + "/eviction", body)


async def clear(workloads: Workloads) -> None:
    """Delete the replicas and wait until home is free for the next test."""
    await workloads.delete("deployments", "chat")

    async def probe() -> bool:
        return not await workloads.pods("app=chat")

    await eventually(probe, "no replica is left", seconds=30)
