"""`kubectl top` with the real metrics-server, which scrapes the node's kubelet port."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.workloads import Workloads, pod_template
from tests.rig.control_plane import ControlPlane
from tests.rig.metrics_server import metrics_server
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

NODE_SPEC = {"backends": [{"name": "local", "provider": "process", "config": {"service": "top"}}]}
IMAGE = "registry.example/tools:1"
BUSY = "while true; do i=$((i+1)); [ $((i % 20000)) = 0 ] && sleep 0.05; done"


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def scraper(control_plane: ControlPlane, node: NodeUnderTest) -> AsyncIterator[None]:
    """metrics-server, once the node is there."""
    async with metrics_server(control_plane):
        yield


async def test_top_shows_pods_containers_and_the_node(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """A busy container uses processor time, a waiting one memory; the node their sum."""
    containers = [
        {"name": "busy", "image": IMAGE, "command": ["sh", "-c", BUSY]},
        {"name": "idle", "image": IMAGE, "command": ["sh", "-c", "while sleep 0.1; do :; done"]},
    ]
    await workloads.create_pod("app", pod_template(node.name, containers=containers))
    await workloads.pod_in("app", "Running")

    async def shown() -> dict[str, tuple[int, int]]:
        text = await workloads.kubectl("top", "pod", "app", "--containers", check=False)
        rows = re.findall(r"^app +(\w+) +(\d+)m +(\d+)Mi", text, re.MULTILINE)
        return {name: (int(cpu), int(memory)) for name, cpu, memory in rows}

    rows = await eventually(shown, "kubectl top pod", seconds=90)

    assert set(rows) == {"busy", "idle"}
    assert rows["busy"][0] > rows["idle"][0]
    top = await workloads.kubectl("top", "node", node.name)
    found = re.search(rf"^{node.name} +(\d+)m +\d+%? +(\d+)Mi", top, re.MULTILINE)
    assert found, top
    assert int(found[1]) >= rows["busy"][0] // 2


async def test_the_summary_has_the_same_pods(node: NodeUnderTest, workloads: Workloads) -> None:
    """What older tools read, and the other scrape paths, each with an answer."""
    await workloads.create_pod("app", pod_template(node.name))
    pod = await workloads.pod_in("app", "Running")

    status, text = await node.kubelet("/stats/summary")

    assert status == 200
    assert pod["metadata"]["uid"] in text
    for path in ("/metrics", "/metrics/cadvisor", "/metrics/probes", "/metrics/resource"):
        assert (await node.kubelet(path))[0] == 200
