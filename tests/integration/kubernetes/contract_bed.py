"""The contract's rig of the other-cluster provider, whatever the node over there is.

Fed by the suites that hold the provider to the contract, each with a node of its own kind and with
containers that take orders there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.integration.kubernetes.other_cluster import OtherCluster, connected, install_rights
from tests.integration.kubernetes.proxy import Kubelet, api_proxy
from tests.rig.control_plane import ControlPlane
from vk_provider.testing.builders import make_resolved_pod
from vk_provider.testing.contract_rig import ContractRig

_REFUSED: dict[str, Any] = {
    "hostNetwork": True,
    "volumes": [{"name": "host", "hostPath": {"path": "/dev"}}],
}
_REFUSED_PATHS = frozenset({"spec.hostNetwork", "spec.volumes[0].hostPath"})


@asynccontextmanager
async def contract_rig(
    bed: ControlPlane,
    node: Kubelet,
    namespace: str,
    folder: Path,
    kind: type[OtherCluster] = OtherCluster,
    **plays: Any,
) -> AsyncIterator[ContractRig]:
    """A namespace over there, behind a proxy that can fail, reached with the shipped rights.

    `plays` are fields of the rig: what makes a container obey the orders of `kind`.
    """
    token = await install_rights(bed, namespace)
    selector = {"kubernetes.io/hostname": node.name}
    async with (
        api_proxy(bed, node) as proxy,
        connected(proxy, token, namespace, folder, nodeSelector=selector) as provider,
    ):
        yield ContractRig(
            provider,
            kind(bed, proxy, namespace),
            unsupported=(make_resolved_pod("odd", **_REFUSED), _REFUSED_PATHS),
            fills_in_addresses=True,
            # Between process and client there are four more sockets than elsewhere.
            most_buffered_bytes=24 << 20,
            **plays,
        )
