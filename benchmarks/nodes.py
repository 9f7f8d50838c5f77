"""The candidates: how each puts one node on a bed, and by which name the audit log knows it.

Fed by `measure` with a fresh bed; each leaves one running process behind, whose pid is measured.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.go_peer import lifted_binary
from tests.rig import builds, identity
from tests.rig.control_plane import ControlPlane
from tests.rig.kwok import is_usable
from tests.rig.polling import eventually

NODE = "bench"
OURS, KWOK, GO_LIFTED, GO = "vk-provider", "kwok", "go-virtual-kubelet", "go-vk-as-released"
_CAPACITY = {"cpu": "10000", "memory": "64Ti", "pods": "20000"}
_GO_USER = "virtual-kubelet"


@dataclass(frozen=True, slots=True)
class Started:
    """A node that runs: the process to measure, and its user in the audit log."""

    pid: int
    user: str
    process: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One kind of node. ``prepare`` builds what it needs, before any bed is up."""

    name: str
    note: str
    prepare: Callable[[], object]
    start: Callable[[ControlPlane, Path | None], Awaitable[Started]]


async def _ours(bed: ControlPlane, profile: Path | None) -> Started:
    kubeconfig = await identity.install(bed)
    document = {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "VirtualNode",
        "metadata": {"name": NODE},
        "spec": {
            "capacity": _CAPACITY,
            "leaderElection": {"namespace": identity.NAMESPACE},
            "server": {
                "address": "127.0.0.1",
                "port": bed.free_port(),
                "plainPort": bed.free_port(),
            },
            "backends": [{"name": "fake", "provider": "fake"}],
        },
    }
    file = bed.folder / "node.yaml"
    file.write_text(json.dumps(document))  # JSON is YAML
    program = ["benchmarks.profiled", str(profile)] if profile else ["vk_provider"]
    command = [sys.executable, "-m", *program, "run"]
    pid = await bed.start("node", [*command, "-f", str(file), "--kubeconfig", str(kubeconfig)])
    await _usable(bed)
    return Started(pid, identity.USER, "node")


async def _kwok(bed: ControlPlane, _: Path | None) -> Started:
    await bed.add_home_node(NODE, _CAPACITY)
    return Started(bed.pids["kwok"], "kwok", "kwok")


async def _go(bed: ControlPlane, program: Path) -> Started:
    pair = bed.serving_pair("127.0.0.1", name="go")
    config = bed.folder / "mock.json"
    room = {key: _CAPACITY[key] for key in ("cpu", "memory", "pods")}
    config.write_text(json.dumps({NODE: room}))
    environment: Mapping[str, str] = os.environ | {
        "APISERVER_CERT_LOCATION": str(pair.certificate),
        "APISERVER_KEY_LOCATION": str(pair.key),
        "VKUBELET_POD_IP": "127.0.0.1",
        "KUBELET_PORT": str(bed.free_port()),
    }
    kubeconfig = bed.kubeconfig_for_user(_GO_USER, ["system:masters"])
    flags = ["--nodename", NODE, "--provider", "mock", "--provider-config", str(config)]
    flags += ["--kubeconfig", str(kubeconfig), "--metrics-addr", f"127.0.0.1:{bed.free_port()}"]
    pid = await bed.start("node", [program, *flags, "--log-level", "warn"], environment)
    await _usable(bed)
    return Started(pid, _GO_USER, "node")


async def _go_lifted(bed: ControlPlane, _: Path | None) -> Started:
    return await _go(bed, lifted_binary())


async def _go_released(bed: ControlPlane, _: Path | None) -> Started:
    return await _go(bed, builds.binary("virtual-kubelet"))


async def _usable(bed: ControlPlane) -> None:
    async def ready() -> bool:
        nodes = (await bed.get_json("/api/v1/nodes"))["items"]
        return any(is_usable(node) for node in nodes if node["metadata"]["name"] == NODE)

    await eventually(ready, f"node {NODE} Ready")


def _nothing() -> None:
    """Ours is installed already."""


CANDIDATES = {
    each.name: each
    for each in (
        Candidate(OURS, "this project, fake provider, shipped identity", _nothing, _ours),
        Candidate(KWOK, "its own fast stages", lambda: builds.binary("kwok"), _kwok),
        Candidate(GO_LIFTED, "mock provider, client limits lifted", lifted_binary, _go_lifted),
        Candidate(
            GO,
            "mock provider, client limits as released (5 requests/s), so with fewer pods",
            lambda: builds.binary("virtual-kubelet"),
            _go_released,
        ),
    )
}
