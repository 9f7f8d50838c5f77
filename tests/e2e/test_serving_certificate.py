"""The cluster signs the node's serving certificate, once somebody approves the request."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest
from cryptography import x509

from tests.e2e.kubectl_streams import Kubectl
from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.workloads import Workloads, pod_template
from tests.rig import identity
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

COMPONENT = identity.DEPLOY / "components" / "serving-certificate" / "rights.yaml"
BACKENDS = [{"name": "local", "provider": "process", "config": {"service": "certificate"}}]


class AskingNode(NodeUnderTest):
    """A node without certificate files, which asks the cluster."""

    def document(self) -> dict[str, Any]:
        """The usual one, but for the certificate."""
        document = super().document()
        document["spec"]["server"]["tls"] = {"csr": True}
        return document


async def test_the_api_server_trusts_the_node_after_the_approval(
    control_plane: ControlPlane, workloads: Workloads
) -> None:
    """Before it logs fail for want of trust; after it exec works."""
    await control_plane.apply(COMPONENT.read_text())
    node = AskingNode(control_plane, "certified", {"backends": BACKENDS})
    async with node:
        await workloads.create_pod("app", pod_template(node.name))
        await workloads.pod_in("app", "Running")
        kubectl = Kubectl(workloads)
        assert "certificate" in (await kubectl.run("logs", "app")).err

        (request,) = await eventually(lambda: requests_of(control_plane, node.name), "a request")
        await control_plane.kubectl("certificate", "approve", request["metadata"]["name"])

        await eventually(lambda: works(kubectl), "exec over the new certificate", seconds=60)
        assert await issuer(node) != "CN=system:node:certified,O=system:nodes"


async def requests_of(bed: ControlPlane, node: str) -> list[dict[str, Any]]:
    """The node's requests."""
    found = await bed.get_json("/apis/certificates.k8s.io/v1/certificatesigningrequests")
    wanted = f"vk-provider-{node}-"
    return [each for each in found["items"] if each["metadata"]["name"].startswith(wanted)]


async def works(kubectl: Kubectl) -> bool:
    """Whether a command can be run."""
    return (await kubectl.run("exec", "app", "--", "true")).code == 0


async def issuer(node: NodeUnderTest) -> str:
    """Who signed what the kubelet port shows."""
    pem = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", node.port))
    return x509.load_pem_x509_certificate(pem.encode()).issuer.rfc4514_string()
