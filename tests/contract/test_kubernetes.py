"""The other-cluster provider keeps the contract, against a second real control plane."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.node_under_test import NodeUnderTest
from tests.integration.kubernetes.other_cluster import (
    OBEDIENT_FIELDS,
    OtherCluster,
    connected,
    install_rights,
    other_node,
)
from tests.integration.kubernetes.proxy import api_proxy
from tests.rig.control_plane import ControlPlane
from vk_provider.testing.builders import make_resolved_pod
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
        token = await install_rights(control_plane, namespace)
        pod = make_resolved_pod(
            "odd", hostNetwork=True, volumes=[{"name": "host", "hostPath": {"path": "/dev"}}]
        )
        paths = frozenset({"spec.hostNetwork", "spec.volumes[0].hostPath"})
        async with (
            api_proxy(control_plane, node) as proxy,
            connected(proxy, token, namespace, tmp_path) as provider,
        ):
            yield ContractRig(
                provider,
                OtherCluster(control_plane, proxy, namespace),
                unsupported=(pod, paths),
                container_fields=OBEDIENT_FIELDS,
                fills_in_addresses=True,
                # Between process and client there are four more sockets than elsewhere.
                most_buffered_bytes=24 << 20,
            )
