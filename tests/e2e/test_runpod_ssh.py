"""kubectl exec, cp, attach and port-forward into a pod on RunPod: the real kubectl, over SSH.

The account is RunPod's simulator, whose pods have real SSH servers; what runs in them is real.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest
import pytest_asyncio
from vk_provider_runpod.simulator import Options, Simulator, running

from tests.e2e.kubectl_streams import SPDY, WEBSOCKET, Kubectl, end, sit_at, terminal
from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.workloads import Workloads, pod_template
from tests.rig.control_plane import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="session")

IMAGE = "runpod/pytorch:2.8.0"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def account() -> AsyncIterator[Simulator]:
    """RunPod, with images that are there at once."""
    async with running(Options(pull_seconds=0, runs_exec=True, log_every_seconds=0.2)) as simulator:
        yield simulator


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def node(
    control_plane: ControlPlane, account: Simulator, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[NodeUnderTest]:
    """A node with that account, and a key to its pods."""
    folder = tmp_path_factory.mktemp("runpod")
    (folder / "api-key").write_text("rpa_end_to_end_key")
    private = asyncssh.generate_private_key("ssh-ed25519").export_private_key()
    (folder / "ssh-key").write_bytes(private)
    config = {
        "apiKey": {"file": str(folder / "api-key")},
        "baseUrl": account.url,
        "listLagSeconds": 1,
        "ssh": {"privateKey": {"file": str(folder / "ssh-key")}},
    }
    backend = {"name": "cloud", "provider": "runpod", "config": config}
    async with NodeUnderTest(control_plane, "runpod-ssh", {"backends": [backend]}) as found:
        yield found


async def run_pod(node: NodeUnderTest, workloads: Workloads) -> None:
    """A running pod ``app``."""
    container = {
        "name": "main",
        "image": IMAGE,
        "env": [{"name": "MODE", "value": 'it\'s "odd"'}],
        "ports": [{"containerPort": 8000}],
    }
    await workloads.create_pod("app", pod_template(node.name, containers=[container]))
    await workloads.pod_in("app", "Running")


@pytest.mark.parametrize("protocol", [WEBSOCKET, SPDY], ids=["websocket", "spdy"])
async def test_kubectl_reaches_into_the_container(
    node: NodeUnderTest, workloads: Workloads, protocol: dict[str, str], tmp_path: Path
) -> None:
    """A terminal with its size and Ctrl-C, exit codes, the container's variables, a file there
    and back."""
    await run_pod(node, workloads)
    kubectl = Kubectl(workloads, protocol)

    async with terminal(kubectl, "exec", "-it", "app", "--", "sh", "-i") as shell:
        await sit_at(shell)

    script = 'echo "$MODE"; echo err >&2; kill -9 $$'
    answer = await kubectl.run("exec", "app", "--", "sh", "-c", script)
    assert (answer.code, answer.out) == (137, b'it\'s "odd"\n')
    assert answer.err.startswith("err\n")

    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.write_bytes(os.urandom(5_000_000))
    up = await kubectl.run("cp", str(sent), "app:big", seconds=120)
    assert up.code == 0, up.err
    down = await kubectl.run("cp", "app:big", str(back), seconds=120)
    assert down.code == 0, down.err
    assert back.read_bytes() == sent.read_bytes()


async def test_kubectl_forwards_ports_and_shows_output(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """Of the container's loopback, and of its log from now on."""
    await run_pod(node, workloads)
    kubectl = Kubectl(workloads)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"you said " + await reader.read(1000))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        forwarding = await kubectl.start("port-forward", "app", f":{port}")
        assert forwarding.stdout
        try:
            line = await asyncio.wait_for(forwarding.stdout.readline(), 30)
            local = re.search(rb"127\.0\.0\.1:(\d+)", line)
            assert local, line
            reader, writer = await asyncio.open_connection("127.0.0.1", int(local[1]))
            writer.write(b"hello")
            assert await asyncio.wait_for(reader.read(), 30) == b"you said hello"
            writer.close()
        finally:
            await end(forwarding)

    attached = await kubectl.start("attach", "app")
    assert attached.stdout
    try:
        assert (await asyncio.wait_for(attached.stdout.readline(), 30)).startswith(b"tick")
    finally:
        await end(attached)


async def test_the_pod_says_where_it_is_reached(
    node: NodeUnderTest, workloads: Workloads, account: Simulator
) -> None:
    """Directly by TCP, and by SSH for whoever has the key."""
    await run_pod(node, workloads)

    pod = await workloads.pod_in("app", "Running")

    notes = pod["metadata"]["annotations"]
    assert re.fullmatch(r"203\.0\.113\.10:\d+", notes["vk-provider.dev/endpoint-8000"]), notes
    assert notes["vk-provider.dev/ssh"].startswith("ssh root@127.0.0.1 -p "), notes
    assert "PUBLIC_KEY" in json.dumps([dict(body) for body in account.state.bodies])
