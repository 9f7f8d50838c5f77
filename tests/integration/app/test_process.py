"""The whole program as a process: its signals, its plain port, its exit codes."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.support.eventually import DEADLINE_SECONDS, eventually
from tests.support.model_apiserver import ModelApiServer
from tests.support.objects import pod

SECRET = "the-key-that-nobody-may-see"


@pytest.fixture
async def api() -> AsyncIterator[ModelApiServer]:
    """An API server that says its version."""
    async with ModelApiServer() as server:
        server.lie(200, path="/version", times=1000, body=b'{"gitVersion": "v1.36.0"}')
        yield server


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def document(name: str, plain_port: int, **config: Any) -> Mapping[str, Any]:
    """A node over the fake provider."""
    return {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "VirtualNode",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"cpu": "100", "memory": "1Ti", "pods": "50"},
            "backends": [{"name": "fake", "provider": "fake", "config": config}],
            "clusterId": "home",
            "tickSeconds": 0.2,
            "taints": [],
            "server": {"port": 0, "plainPort": plain_port, "address": "127.0.0.1"},
            "leaderElection": {"namespace": "system"},
        },
    }


class Program:
    """`vk-provider run` as a child."""

    def __init__(self, child: asyncio.subprocess.Process, plain_port: int) -> None:
        self.child = child
        self.plain_port = plain_port

    async def get(self, path: str) -> tuple[int, str]:
        """One request to the plain port; status 0 while nobody listens."""
        url = f"http://127.0.0.1:{self.plain_port}{path}"
        try:
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                return answer.status, await answer.text()
        except aiohttp.ClientError:
            return 0, ""

    async def until_ready(self) -> None:
        """Return once `/readyz` says so."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (await self.get("/readyz"))[0] != 200:
            assert time.monotonic() < deadline, await self.get("/readyz?verbose")
            await asyncio.sleep(0.05)

    async def until_metric(self, sample: str) -> None:
        """Return once `/metrics` has this sample."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while sample not in (await self.get("/metrics"))[1]:
            assert time.monotonic() < deadline, sample
            await asyncio.sleep(0.05)

    async def ended(self) -> int:
        """Its exit code."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self.child.wait()


@asynccontextmanager
async def program(
    api: ModelApiServer, folder: Path, port: int, documents: Sequence[Mapping[str, Any]]
) -> AsyncIterator[Program]:
    """The program over these documents; killed at the end if it still runs."""
    kubeconfig, config = folder / "kubeconfig", folder / "nodes.yaml"
    cluster = {"name": "c", "cluster": {"server": api.url}}
    user = {"name": "u", "user": {"token": SECRET}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    both = {"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "x"}
    kubeconfig.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **both}))
    config.write_text(yaml.safe_dump_all(documents))
    with (folder / "log").open("wb") as log:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "vk_provider", "run",
            "-f", str(config), "--kubeconfig", str(kubeconfig), "--log-level", "debug",
            stderr=log, stdout=log,
        )  # fmt: skip
    try:
        yield Program(child, port)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def test_a_signal_ends_it_in_peace(api: ModelApiServer, tmp_path: Path) -> None:
    """Two nodes in one process, one plain port; exit code 0, both Ready, no secret in the log."""
    port = free_port()
    documents = [document("one", port), document("two", port)]
    async with program(api, tmp_path, port, documents) as child:
        await child.until_ready()
        status, text = await child.get("/livez?verbose")
        assert (status, "[+]one ok" in text, "[+]two ok" in text) == (200, True, True)
        # A replica that waits to lead is ready too: leading is to be waited for.
        await child.until_metric('vk_provider_leader{node="one"} 1.0')
        await child.until_metric('vk_provider_door_state{node="two",state="open"} 1.0')
        child.child.send_signal(signal.SIGTERM)
        assert await child.ended() == 0
    for name in ("one", "two"):
        status_of = api.store.objects["nodes", "", name]["status"]
        assert {c["type"]: c["status"] for c in status_of["conditions"]}["Ready"] == "True"
    log = (tmp_path / "log").read_text()
    assert "the instances run on" in log
    assert SECRET not in log
    assert "Traceback" not in log


async def test_a_second_signal_ends_it_at_once(api: ModelApiServer, tmp_path: Path) -> None:
    """A create that takes for ever does not keep a person who means it waiting."""
    port = free_port()
    api.store.put("pods", pod("web", node="one"))
    documents = [document("one", port, createSeconds=1000)]
    async with program(api, tmp_path, port, documents) as child:
        await child.until_ready()
        await eventually(lambda: "vk-provider.dev/placement" in str(api.store.objects))
        child.child.send_signal(signal.SIGTERM)
        await eventually(lambda: "the instances run on" in (tmp_path / "log").read_text())
        begun = time.monotonic()
        child.child.send_signal(signal.SIGTERM)
        assert await child.ended() == -signal.SIGTERM
        assert time.monotonic() - begun < 5


async def test_a_plain_port_that_is_taken_is_a_configuration_error(
    api: ModelApiServer, tmp_path: Path
) -> None:
    """Exit code 2 and the field's path."""
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        async with program(api, tmp_path, port, [document("one", port)]) as child:
            assert await child.ended() == 2
    assert "spec.server.plainPort: can't listen on" in (tmp_path / "log").read_text()


async def test_a_node_of_somebody_else_ends_it_with_exit_code_2(
    api: ModelApiServer, tmp_path: Path
) -> None:
    """The message of the one fault, not a group of tracebacks."""
    api.store.put("nodes", {"kind": "Node", "metadata": {"name": "one"}})
    port = free_port()
    async with program(api, tmp_path, port, [document("one", port)]) as child:
        assert await child.ended() == 2
    log = (tmp_path / "log").read_text()
    assert "was not made by vk-provider" in log
    assert "Traceback" not in log
