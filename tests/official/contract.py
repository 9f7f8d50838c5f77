"""The other-cluster provider keeps the contract where a real kubelet and containerd run its pods.

The same suite as `tests/contract/test_kubernetes.py`, whose containers are processes. Its name is
not a test's, since it only runs inside an enclosure: `python -m tests.official --contract`.
Fed by `world` with a node; judged by pytest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.integration.kubernetes.contract_bed import contract_rig
from tests.integration.kubernetes.other_cluster import OtherCluster
from tests.official.world import real_cluster
from tests.rig.control_plane import ControlPlane
from tests.rig.real_node import network
from tests.rig.real_node.node import RealNode
from tests.support.obedient import OBEDIENT, listening
from vk_provider.pods.types import InstanceRef, Json
from vk_provider.testing.contract import ContractRig, ProviderContract
from vk_provider.testing.contract_streams import StreamContracts

pytestmark = pytest.mark.asyncio(loop_scope="session")

BUSYBOX = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"
"""One of the suite's own images, which the node has."""
ECHO_PORT, CLOSED_PORT = 7000, 7001
"""Every pod has a network of its own."""
ECHO = 'exec tcpsvd -c 64 -b 64 0 "$0" cat'
OBEDIENT_FIELDS: Json = {
    "image": BUSYBOX,
    "command": ["sh", "-c", OBEDIENT, "obedient"],
    "args": ["sh", ECHO],
}
ENDING: Json = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
"""An end is one: a kubelet would start the container again."""


class RealCluster(OtherCluster):
    """A namespace whose pods have addresses, which are reached from here."""

    async def echo_port(self, ref: InstanceRef) -> int:
        await self.order(ref, "main", f"serve {ECHO_PORT}")
        address = (await self.pod(ref))["status"]["podIP"]
        return await listening(ECHO_PORT, address)

    async def closed_port(self, ref: InstanceRef) -> int:
        return CLOSED_PORT


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def node() -> AsyncIterator[RealNode]:
    """The other cluster's only node."""
    network.narrow_buffers()
    async with real_cluster() as running:
        yield running


@pytest.fixture(scope="session")
def control_plane(node: RealNode) -> ControlPlane:
    """The other cluster, in which each test has a namespace."""
    return node.bed


class TestRealKubelet(ProviderContract, StreamContracts):
    """The whole suite, with the rights that are shipped for the other side."""

    @pytest_asyncio.fixture(loop_scope="session")
    async def rig(  # type: ignore[override]  # a fixture all the same
        self, node: RealNode, namespace: str, tmp_path: Path
    ) -> AsyncIterator[ContractRig]:
        """A namespace over there, behind a proxy that can fail."""
        async with contract_rig(
            node.bed,
            node,
            namespace,
            tmp_path,
            RealCluster,
            container_fields=OBEDIENT_FIELDS,
            pod_fields=ENDING,
            ends_commands=False,
            sizes_first=False,
        ) as rig:
            yield rig
