"""The identity that `deploy/` ships: the node under test runs with it, never as admin."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from tests.rig.control_plane import ControlPlane

DEPLOY = Path(__file__).parents[2] / "deploy" / "kustomize"
NAMESPACE = "vk-provider"
SERVICE_ACCOUNT = "vk-provider"
USER = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"
"""Its name in the audit log."""

# What makes the identity; the Deployment and its configuration would start a second node.
IDENTITY_KINDS = frozenset(
    {"Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
)


async def rendered(bed: ControlPlane, folder: Path = DEPLOY) -> list[dict[str, Any]]:
    """Return the objects that `kubectl kustomize` makes of a folder."""
    text = await bed.kubectl("kustomize", str(folder))
    return [document for document in yaml.safe_load_all(text) if document]


async def install(
    bed: ControlPlane,
    folder: Path = DEPLOY,
    *,
    kinds: Collection[str] = IDENTITY_KINDS,
    namespace: str = NAMESPACE,
    name: str = SERVICE_ACCOUNT,
) -> Path:
    """Apply the shipped objects of these kinds; return a kubeconfig of the ServiceAccount."""
    objects = [document for document in await rendered(bed, folder) if document["kind"] in kinds]
    # The namespace first: the objects in it would be refused otherwise.
    objects.sort(key=lambda document: document["kind"] != "Namespace")
    await bed.apply(objects)
    return await bed.service_account_kubeconfig(namespace, name)
