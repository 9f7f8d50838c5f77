"""The other-cluster provider keeps the contract, against a second real control plane.

Its containers are processes of this machine. `tests/official/contract.py` is the same with a real
kubelet and containerd.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.node_under_test import NodeUnderTest
from tests.integration.kubernetes.contract_bed import contract_rig
from tests.integration.kubernetes.other_cluster import other_node
from tests.rig.control_plane import ControlPlane
from tests.support.obedient import OBEDIENT_FIELDS
from vk_provider.testing.contract import ContractRig, ProviderContract
from vk_provider.testing.contract_streams import StreamContracts

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def node(control_plane: ControlPlane) -> AsyncIterator[NodeUnderTest]:
    """The other cluster's only node, with real processes as containers."""
    async with other_node(control_plane) as running:
        yield running


class TestKubernetes(ProviderContract, StreamContracts):
    """The whole suite, with the rights that are shipped for the other side."""

    @pytest_asyncio.fixture(loop_scope="session")
    async def rig(  # type: ignore[override]  # a fixture all the same
        self, control_plane: ControlPlane, node: NodeUnderTest, namespace: str, tmp_path: Path
    ) -> AsyncIterator[ContractRig]:
        """A namespace over there, behind a proxy that can fail."""
        async with contract_rig(
            control_plane, node, namespace, tmp_path, container_fields=OBEDIENT_FIELDS
        ) as rig:
            yield rig
