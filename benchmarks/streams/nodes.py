"""Both nodes on one bed, each with one running pod whose container is a local process.

The container writes a file of lines to its log whenever its flag appears. Fed by a bed; feeds
`measure` with what it needs to know of each side.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.streams.go_program import go_program
from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.workloads import phase_of
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

OURS, GO = "vk-provider", "go-streaming"
LINES = 200_000
LAST_LINE = "END"
_PODS = "/api/v1/namespaces/default/pods"
_LOG_BYTES = 4 << 30
"""So much that no round drops lines which a reader has not seen."""
_TEXT = (
    "a line of a log, of about the length that a busy web server writes for each of its requests"
)


@dataclass(frozen=True, slots=True)
class Side:
    """One node: the process to measure, its pod, and the flag that makes the pod write."""

    name: str
    pid: int
    pod: str
    flag: Path


def write_lines(bed: ControlPlane) -> Path:
    """Make the file that both containers write to their logs."""
    file = bed.folder / "lines"
    lines = [f"{number:07d} {_TEXT}\n" for number in range(LINES - 1)]
    file.write_text("".join([*lines, f"{LAST_LINE}\n"]))
    return file


def container_command(flag: Path, lines: Path) -> list[str]:
    """Say that it runs, then write the lines each time that the flag is there."""
    flagged, written = shlex.quote(str(flag)), shlex.quote(str(lines))
    loop = f"if [ -e {flagged} ]; then rm {flagged}; cat {written}; fi; sleep 0.05"
    return ["sh", "-c", f"echo running; while :; do {loop}; done"]


async def start_ours(bed: ControlPlane, node: NodeUnderTest, lines: Path) -> Side:
    """A pod of the process provider on our node."""
    flag = bed.folder / "write-ours"
    await _create_pod(bed, "ours", node.name, container_command(flag, lines))

    async def running() -> bool:
        return phase_of(await bed.get_json(f"{_PODS}/ours")) == "Running"

    await eventually(running, "our pod Running", seconds=60)
    return Side(OURS, bed.pids[node.process], "ours", flag)


def our_node(bed: ControlPlane) -> NodeUnderTest:
    """Our node as its users start it, with local processes for containers."""
    config = {"logBytes": _LOG_BYTES}
    backend = {"name": "local", "provider": "process", "config": config}
    return NodeUnderTest(bed, "streams", {"backends": [backend]})


async def start_go(bed: ControlPlane, lines: Path) -> Side:
    """The peer, its Node, and a pod that is Running by our word: it has no control loop."""
    port, flag = bed.free_port(), bed.folder / "write-go"
    pair = bed.serving_pair("127.0.0.1", name="go")
    command: list[str | Path] = [go_program(), "serve", "-listen", f"127.0.0.1:{port}"]
    command += ["-cert", pair.certificate, "-key", pair.key, "-client-ca", bed.ca_file]
    command += ["-log-file", bed.folder / "go-container.log", "--"]
    pid = await bed.start(GO, [*command, *container_command(flag, lines)])
    await _register(bed, port)
    await _create_pod(bed, "go", GO, container_command(flag, lines))
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    container = {
        "name": "main",
        "image": "registry.example/tools:1",
        "imageID": "",
        "restartCount": 0,
        "ready": True,
        "containerID": "process://main",
        "state": state,
    }
    await _patch(bed, f"{_PODS}/go/status", {"phase": "Running", "containerStatuses": [container]})
    return Side(GO, pid, "go", flag)


async def _register(bed: ControlPlane, port: int) -> None:
    await bed.request_json(
        "POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": GO}}
    )
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Bench", "message": ""}],
    }
    await _patch(bed, f"/api/v1/nodes/{GO}/status", status)


async def _create_pod(bed: ControlPlane, name: str, node: str, command: list[str]) -> None:
    # The API server of the bed knows of no heartbeat of the peer: its pod stays all the same.
    spec: dict[str, Any] = {
        "nodeName": node,
        "restartPolicy": "Never",
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "registry.example/tools:1", "command": command}],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    await bed.request_json("POST", _PODS, body)


async def _patch(bed: ControlPlane, path: str, status: dict[str, Any]) -> None:
    kind = "application/merge-patch+json"
    await bed.request_json("PATCH", path, {"status": status}, content_type=kind)
