"""Every inference server that another cluster accepts becomes Ready there.

The other cluster is a real control plane, whose only node is this product over the fake service:
its scheduler, its admission, its claims and its rights are real, its containers are not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.e2e.node_under_test import NodeUnderTest
from tests.integration.app.served import all_ready
from tests.integration.kubernetes.other_cluster import install_rights
from tests.rig.control_plane import ControlPlane
from tests.support.inference_servers import accepted, node_document

pytestmark = pytest.mark.asyncio(loop_scope="session")

NODE = "inference-node"
RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
CAPACITY = {
    "cpu": "1000",
    "memory": "4Ti",
    "ephemeral-storage": "4Ti",
    "nvidia.com/gpu": "64",
    "pods": "100",
}


@asynccontextmanager
async def prepared(bed: ControlPlane, namespace: str) -> AsyncIterator[None]:
    """The claims that the manifests' node maps home's to, with a volume for each, and the
    RuntimeClass that one of them names."""
    mapped = node_document("cluster")["spec"]["backends"][0]["config"]["volumeClaims"]
    size = {"storage": "1Gi"}
    for name in mapped.values():
        volume = f"{namespace}-{name}"
        spec = {
            "accessModes": ["ReadWriteMany"],
            "capacity": size,
            "hostPath": {"path": f"/{volume}"},
        }
        body = {"metadata": {"name": volume}, "spec": spec}
        await bed.request_json("POST", "/api/v1/persistentvolumes", body)
        claim = {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": volume,
            "resources": {"requests": size},
        }
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        await bed.request_json("POST", path, {"metadata": {"name": name}, "spec": claim})
    runtime = {"metadata": {"name": "nvidia"}, "handler": "nvidia"}
    await bed.request_json("POST", RUNTIME_CLASSES, runtime)
    try:
        yield
    finally:
        await bed.request_json("DELETE", f"{RUNTIME_CLASSES}/nvidia")
        for name in mapped.values():
            await bed.request_json("DELETE", f"/api/v1/persistentvolumes/{namespace}-{name}")


async def test_what_another_cluster_accepts_becomes_ready(
    control_plane: ControlPlane, namespace: str
) -> None:
    """With the rights that are shipped for the other side, one pod each."""
    await install_rights(control_plane, namespace)
    kubeconfig = await control_plane.service_account_kubeconfig(namespace, "vk-provider")
    spec = {"taints": [], "capacity": CAPACITY}
    config = {
        "kubeconfig": str(kubeconfig),
        "namespace": namespace,
        "nodeSelector": {"kubernetes.io/hostname": NODE},
    }
    async with (
        prepared(control_plane, namespace),
        NodeUnderTest(control_plane, NODE, spec),
        all_ready("cluster", **config),
    ):
        listed = await control_plane.get_json(f"/api/v1/namespaces/{namespace}/pods")
        assert len(listed["items"]) == len(accepted("cluster"))
