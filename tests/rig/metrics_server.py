"""The real metrics-server on a bed: it scrapes the nodes, `kubectl top` and the autoscaler ask it.

async with metrics_server(bed):
    print(await bed.kubectl("top", "nodes"))
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.rig import builds
from tests.rig.access import ADMIN_GROUP
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually
from tests.rig.processes import ProcessError

NAMESPACE = "kube-system"
NAME = "metrics-server"
API = "v1beta1.metrics.k8s.io"
SCRAPE_RIGHTS: dict[str, object] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "system:metrics-server"},
    "rules": [
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]},
    ],
}
"""The shipped ClusterRole of metrics-server."""


def _binding(name: str, role: str, kind: str = "ClusterRole") -> dict[str, object]:
    namespaced = kind == "Role"
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding" if namespaced else "ClusterRoleBinding",
        "metadata": {"name": name, **({"namespace": NAMESPACE} if namespaced else {})},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }


@asynccontextmanager
async def metrics_server(bed: ControlPlane) -> AsyncIterator[None]:
    """Run it with an identity of its own and its shipped rights; returns when the API is there."""
    binary = await asyncio.to_thread(builds.binary, NAME)
    port = bed.free_port()
    account = {"kind": "ServiceAccount", "apiVersion": "v1"}
    rights: list[dict[str, object]] = [
        {**account, "metadata": {"name": NAME, "namespace": NAMESPACE}},
        SCRAPE_RIGHTS,
        _binding("system:metrics-server", "system:metrics-server"),
        _binding("metrics-server:system:auth-delegator", "system:auth-delegator"),
        _binding("metrics-server-auth-reader", "extension-apiserver-authentication-reader", "Role"),
    ]
    await bed.apply(rights)
    kubeconfig = await bed.service_account_kubeconfig(NAMESPACE, NAME)
    pair = bed.authority.issue("metrics-server", "localhost", [ADMIN_GROUP], hosts=["localhost"])
    await bed.start(
        NAME,
        [
            binary,
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={pair.certificate}",
            f"--tls-private-key-file={pair.key}",
            "--kubelet-use-node-status-port",
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-certificate-authority={bed.ca_file}",
            "--kubelet-request-timeout=5s",
            "--metric-resolution=10s",
        ],
    )
    await bed.apply(_registration(port))
    try:
        await _until_available(bed)
        yield
    finally:
        await bed.request_json("DELETE", f"/apis/apiregistration.k8s.io/v1/apiservices/{API}")
        await bed.stop(NAME)


def _registration(port: int) -> list[dict[str, object]]:
    """The API server finds it by a name outside the cluster, as there is no network of pods."""
    metadata = {"name": NAME, "namespace": NAMESPACE}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": API},
            "spec": {
                "group": "metrics.k8s.io",
                "version": "v1beta1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {**metadata, "port": port},
            },
        },
    ]


async def _until_available(bed: ControlPlane) -> None:
    try:
        await eventually(lambda: _available(bed), "the metrics API", seconds=60)
    except TimeoutError as error:
        found = await bed.get_json(f"/apis/apiregistration.k8s.io/v1/apiservices/{API}")
        raise ProcessError(f"{error}\n{found.get('status')}\n{bed.log_tail(NAME)}") from error


async def _available(bed: ControlPlane) -> bool:
    found = await bed.get_json(f"/apis/apiregistration.k8s.io/v1/apiservices/{API}")
    conditions = found.get("status", {}).get("conditions") or []
    return any(each["type"] == "Available" and each["status"] == "True" for each in conditions)
