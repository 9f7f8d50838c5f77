"""The other cluster of the end-to-end tests, as its administrator sees it: a second control plane.

Fed by the session's fixture `other`; feeds every module whose node has a backend there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.integration.kubernetes.other_cluster import DEPLOY, SHIPPED_NAMESPACE, other_node
from tests.rig import identity
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

HOME_UID = "vk-provider.dev/home-pod-uid"
GPU = "nvidia.com/gpu"
POOLS = ("kwok", "real")


class Other:
    """The other cluster, as its administrator sees it."""

    def __init__(self, bed: ControlPlane, kubeconfig: str) -> None:
        self.bed = bed
        self.kubeconfig = kubeconfig
        self.path = f"/api/v1/namespaces/{SHIPPED_NAMESPACE}"

    async def pods(self, *home: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The instances, all or those of these home pods."""
        uids = {pod["metadata"]["uid"] for pod in home}
        listed = (await self.bed.get_json(f"{self.path}/pods"))["items"]
        return [pod for pod in listed if not home or pod["metadata"]["labels"][HOME_UID] in uids]

    async def pod(self, home: Mapping[str, Any]) -> dict[str, Any]:
        """The one instance of a home pod."""
        (found,) = await self.pods(home)
        return found

    async def copies(self, kind: str) -> list[dict[str, Any]]:
        """The copied objects of a kind."""
        listed = (await self.bed.get_json(f"{self.path}/{kind}"))["items"]
        return [each for each in listed if "vk-provider.dev/home-node" in labels_of(each)]

    async def patch_status(self, pod: Mapping[str, Any], status: dict[str, Any]) -> None:
        """Play its kubelet."""
        path = f"{self.path}/pods/{pod['metadata']['name']}/status"
        kind = "application/strategic-merge-patch+json"
        await self.bed.request_json("PATCH", path, {"status": status}, content_type=kind)

    async def none_left(self, *home: Mapping[str, Any]) -> None:
        """Wait until nothing of these pods is there."""

        async def gone() -> bool:
            return not await self.pods(*home)

        await eventually(gone, "the end of the other pods", seconds=40)


def labels_of(thing: Mapping[str, Any]) -> dict[str, str]:
    """Its labels."""
    return dict(thing["metadata"].get("labels") or {})


def backend(other: Other, pool: str, **config: Any) -> dict[str, Any]:
    """A backend of a node under test: one of the other cluster's pools of nodes."""
    shared = {"kubeconfig": other.kubeconfig, "namespace": SHIPPED_NAMESPACE}
    found = {**shared, "nodeSelector": {"pool": pool}, **config}
    return {"name": pool, "provider": "kubernetes", "config": found}


@asynccontextmanager
async def other_cluster() -> AsyncIterator[Other]:
    """A second control plane with two kwok nodes, one real node, and the shipped rights."""
    async with ControlPlane() as bed:
        kubeconfig = await identity.install(
            bed,
            DEPLOY,
            kinds={"Namespace", "ServiceAccount", "Role", "RoleBinding"},
            namespace=SHIPPED_NAMESPACE,
        )
        for name in ("kwok-1", "kwok-2"):
            await bed.add_home_node(name, {GPU: "4"}, {"pool": "kwok"})
        async with other_node(bed):
            yield Other(bed, str(kubeconfig))
