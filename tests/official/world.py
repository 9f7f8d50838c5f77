"""The two clusters of a run, on one flat network: home with our node alone, and the one behind it.

Fed by `__main__` inside an enclosure; gives the suite a home cluster whose only node is virtual,
and the provider's contract the other cluster alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.official.reference import VERSION
from tests.rig import identity
from tests.rig.access import ApiError
from tests.rig.control_plane import ControlPlane
from tests.rig.kwok import is_usable
from tests.rig.polling import eventually
from tests.rig.real_node import network, services
from tests.rig.real_node.node import NAME as REAL_NODE
from tests.rig.real_node.node import RealNode

NODE = "virtual-node"
REMOTE = identity.DEPLOY.parent / "kustomize-remote"
REMOTE_NAMESPACE = "vk-burst"
_COMPONENTS = ("service-env", "service-account-tokens")
_HOME_API = "10.0.0.1"
"""The ClusterIP of home's API server."""
_KUBELET_PORT = 10250
"""Some specs ask the node at this port whatever its Node object says."""
_REMOTE_KINDS = ("Namespace", "ServiceAccount", "Role", "RoleBinding")
# The `kubernetes` Service leads to the API server, as pods expect it to.
_WITH_ENDPOINTS = ("--endpoint-reconciler-type=lease",)


@asynccontextmanager
async def real_cluster() -> AsyncIterator[RealNode]:
    """A control plane whose only node is real; gives that node once it is Ready."""
    async with ControlPlane(version=VERSION, address=network.NODE_ADDRESS, audit=False) as bed:
        network.prepare_kernel(bed.folder / "kernel")
        node = RealNode(bed)
        await node.start()
        yield node


@asynccontextmanager
async def world() -> AsyncIterator[ControlPlane]:
    """Bring everything up; gives the home cluster once its node is Ready."""
    async with (
        real_cluster() as node,
        ControlPlane(
            version=VERSION,
            address=network.HOME_ADDRESS,
            audit=False,
            apiserver_args=_WITH_ENDPOINTS,
        ) as home,
    ):
        await services.start_proxy(home, NODE)
        await services.start_dns(home, network.HOME_ADDRESS)
        await _start_virtual_node(home, node.bed)
        yield home


async def _start_virtual_node(home: ControlPlane, other: ControlPlane) -> None:
    remote = await identity.install(other, REMOTE, kinds=_REMOTE_KINDS, namespace=REMOTE_NAMESPACE)
    kubeconfig = await identity.install(home, _with_components(home.folder))
    allocatable = (await other.get_json(f"/api/v1/nodes/{REAL_NODE}"))["status"]["allocatable"]
    file = home.folder / "node.yaml"
    document = _document(home, remote, {name: str(amount) for name, amount in allocatable.items()})
    file.write_text(json.dumps(document))  # JSON is YAML
    program = [sys.executable, "-m", "vk_provider", "run", "-f", str(file)]
    await home.start("node", [*program, "--kubeconfig", str(kubeconfig)])

    async def usable() -> bool:
        try:
            return is_usable(await home.get_json(f"/api/v1/nodes/{NODE}"))
        except ApiError:
            return False

    await eventually(usable, f"node {NODE} Ready")


def _with_components(folder: Path) -> Path:
    """The shipped identity with the optional rights that a flat network makes use of."""
    overlay = folder / "identity"
    overlay.mkdir()
    here = os.path.relpath(identity.DEPLOY, overlay)
    lines = [f"resources: [{here}]", "components:"]
    lines += [f"  - {here}/components/{name}" for name in _COMPONENTS]
    (overlay / "kustomization.yaml").write_text("\n".join(lines) + "\n")
    return overlay


def _document(home: ControlPlane, remote: Path, capacity: dict[str, str]) -> dict[str, Any]:
    pair = home.serving_pair(network.HOME_ADDRESS, NODE)
    return {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "VirtualNode",
        "metadata": {"name": NODE},
        "spec": {
            "capacity": capacity,
            "taints": [],  # the suite's pods tolerate nothing
            "tickSeconds": 1,
            "reach": "direct",
            "leaderElection": {"namespace": identity.NAMESPACE},
            "server": {
                "address": network.HOME_ADDRESS,
                "port": _KUBELET_PORT,
                "plainPort": home.free_port(),
                "tls": {"certFile": str(pair.certificate), "keyFile": str(pair.key)},
            },
            "backends": [
                {
                    "name": "other",
                    "provider": "kubernetes",
                    "config": {
                        "kubeconfig": str(remote),
                        "namespace": REMOTE_NAMESPACE,
                        "hostAccess": True,
                        "homeServices": {
                            "enabled": True,
                            "clusterDNS": [services.DNS_ADDRESS],
                            "clusterDomain": services.DNS_DOMAIN,
                        },
                        "serviceAccountTokens": {
                            "enabled": True,
                            "apiServer": {"host": _HOME_API, "port": 443},
                        },
                    },
                }
            ],
        },
    }
