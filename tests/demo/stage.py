"""What the demo plays on: a control plane, the RunPod simulator, and one vk-provider.

Fed by ``__main__``; offers the acts short questions about the cluster and the bill.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp
import yaml

from tests.rig import identity
from tests.rig.control_plane import ControlPlane

NODE = "burst"
BACKEND = "runpod"
NAMESPACE = "default"
PATIENCE_SECONDS = 60.0

T = TypeVar("T")


class DemoError(Exception):
    """Something that the demo was going to show is not true."""


class Stage:
    """The cluster and the backend, as the acts see them."""

    def __init__(self, bed: ControlPlane, session: aiohttp.ClientSession, backend: str) -> None:
        self.bed = bed
        self._session = session
        self._backend = backend

    async def pods(self) -> list[dict[str, Any]]:
        """Every pod of the demo's namespace."""
        found = await self.bed.get_json(f"/api/v1/namespaces/{NAMESPACE}/pods")
        return list(found["items"])

    async def running(self) -> list[dict[str, Any]]:
        """The pods that are Running and Ready on the virtual node."""
        return [pod for pod in await self.pods() if _is_running(pod)]

    async def node(self) -> dict[str, Any]:
        """The virtual Node."""
        return dict(await self.bed.get_json(f"/api/v1/nodes/{NODE}"))

    async def ask_backend(
        self, path: str, body: Mapping[str, Any] | None = None, method: str | None = None
    ) -> Any:
        """Use the simulator's back door; without a body it is read."""
        verb = method or ("GET" if body is None else "POST")
        url = f"{self._backend}/_sim{path}"
        async with self._session.request(verb, url, json=body) as answer:
            text = await answer.text()
            if answer.status >= 300:
                raise DemoError(f"the simulator refused {verb} {path}: {text}")
            return json.loads(text) if text else None

    async def until(
        self,
        what: str,
        probe: Callable[[], Awaitable[T | None]],
        seconds: float = PATIENCE_SECONDS,
    ) -> T:
        """Ask again and again until the answer is true; DemoError after ``seconds``."""
        deadline = time.monotonic() + seconds
        while not (answer := await probe()):
            if time.monotonic() > deadline:
                log = self.bed.log_tail("vk-provider", 12)
                raise DemoError(f"expected within {seconds:.0f} s: {what}\n{log}")
            await asyncio.sleep(0.2)
        return answer


@asynccontextmanager
async def set_up() -> AsyncIterator[Stage]:
    """A bed with the simulator and one node, which runs with the identity that deploy/ ships."""
    async with ControlPlane() as bed, aiohttp.ClientSession() as session:
        port = bed.free_port()
        await bed.start("simulator", [*_program(), "simulate", "runpod", *_simulator_flags(port)])
        backend = f"http://127.0.0.1:{port}"
        stage = Stage(bed, session, backend)
        await stage.until("the simulator answers", lambda: _answers(session, backend))
        account = await identity.install(bed)
        file = bed.folder / "vk-provider.yaml"
        file.write_text(yaml.safe_dump(_configuration(bed, backend), sort_keys=False))
        flags = ["run", "-f", str(file), "--kubeconfig", str(account)]
        environment = {**os.environ, "RUNPOD_API_KEY": "the-simulator-takes-any-key"}
        await bed.start("vk-provider", [*_program(), *flags], env=environment)
        yield stage


def _program() -> list[str]:
    return [sys.executable, "-m", "vk_provider"]


def _simulator_flags(port: int) -> list[str]:
    return ["--port", str(port), "--pull-seconds", "2", "--create-latency-ms", "50-300"]


async def _answers(session: aiohttp.ClientSession, backend: str) -> bool:
    try:
        async with session.get(f"{backend}/_sim/clock") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


def _configuration(bed: ControlPlane, backend: str) -> dict[str, Any]:
    """As an operator would write it, with shorter times: an audience does not wait."""
    pair = bed.serving_pair("127.0.0.1")
    return {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "VirtualNode",
        "metadata": {"name": NODE},
        "spec": {
            "capacity": {"cpu": "128", "memory": "1Ti", "nvidia.com/gpu": "16", "pods": "64"},
            "labels": {"topology.kubernetes.io/zone": "outside"},
            "tickSeconds": 1,
            "door": {"firstCooldownSeconds": 6},
            "leaderElection": {"namespace": identity.NAMESPACE},
            "server": {
                "address": "127.0.0.1",
                "port": bed.free_port(),
                "plainPort": bed.free_port(),
                "tls": {"certFile": str(pair.certificate), "keyFile": str(pair.key)},
            },
            "backends": [
                {
                    "name": BACKEND,
                    "provider": "runpod",
                    "config": {
                        "apiKey": {"env": "RUNPOD_API_KEY"},
                        "baseUrl": backend,
                        "gpuTypes": ["NVIDIA L40S", "NVIDIA A100 80GB PCIe"],
                        "listLagSeconds": 1,
                    },
                }
            ],
        },
    }


def _is_running(pod: Mapping[str, Any]) -> bool:
    status = pod.get("status", {})
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in status.get("conditions", [])
    )
    on_node = pod["spec"].get("nodeName") == NODE
    return bool(ready and on_node and status.get("phase") == "Running")
