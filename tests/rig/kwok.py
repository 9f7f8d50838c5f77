"""Home nodes played by kwok: real Node and Pod objects, no containers.

kwok manages only nodes with the annotation `kwok.x-k8s.io/node=fake`, so it never touches the
virtual node under test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.rig import builds
from tests.rig.access import ADMIN_GROUP
from tests.rig.polling import eventually

if TYPE_CHECKING:
    from tests.rig.control_plane import ControlPlane

ANNOTATION = {"kwok.x-k8s.io/node": "fake"}
CAPACITY = {"cpu": "32", "memory": "256Gi", "pods": "110"}
_STAGE_FOLDERS = ("node/fast", "node/heartbeat-with-lease", "pod/fast")


@dataclass(frozen=True, slots=True)
class Stages:
    """How kwok's pods live; kwok's own fast stages unless told otherwise."""

    start_seconds: float = 0.0
    stop_seconds: float = 0.0
    complete_jobs: bool = True
    """kwok's fast stages finish the pods of a Job at once."""
    jobs_complete_when: str = ""
    """An annotation: a Job's pod completes once it has it, so that a job runs until told to end."""

    def render(self, folder: Path) -> str:
        """Return kwok's configuration from the stage files in a folder."""
        files = [f for name in _STAGE_FOLDERS for f in sorted((folder / name).glob("*.yaml"))]
        documents = [yaml.safe_load(file.read_text()) for file in files]
        stages = [document for document in documents if document["kind"] == "Stage"]
        return yaml.safe_dump_all(self._adjusted(stage) for stage in stages if self._wanted(stage))

    def _wanted(self, stage: Mapping[str, Any]) -> bool:
        return self.complete_jobs or stage["metadata"]["name"] != "pod-complete"

    def _adjusted(self, stage: dict[str, Any]) -> dict[str, Any]:
        name = stage["metadata"]["name"]
        delays = {"pod-ready": self.start_seconds, "pod-delete": self.stop_seconds}
        if seconds := delays.get(name):
            stage["spec"]["delay"] = {"durationMilliseconds": int(seconds * 1000)}
        if name == "pod-complete" and self.jobs_complete_when:
            key = f'.metadata.annotations["{self.jobs_complete_when}"]'
            selector = stage["spec"].setdefault("selector", {}).setdefault("matchExpressions", [])
            selector.append({"key": key, "operator": "Exists"})
        return stage


class HomeNodes:
    """kwok for one bed, started with the first node."""

    def __init__(self, bed: ControlPlane) -> None:
        self._bed = bed
        self._started = asyncio.Lock()
        self._running = False

    async def start(self, stages: Stages | None = None) -> None:
        """Start kwok unless it runs (a restart would stall for the 40 s of its node leases)."""
        async with self._started:
            if not self._running:
                await self._start(stages or Stages())
                self._running = True

    async def add(
        self,
        name: str,
        capacity: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        *,
        taints: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Create a node and wait until pods can be scheduled to it."""
        await self._bed.request_json("POST", "/api/v1/nodes", node(name, capacity, labels, taints))

        async def usable() -> bool:
            return is_usable(await self._bed.get_json(f"/api/v1/nodes/{name}"))

        await eventually(usable, f"home node {name} Ready")

    async def _start(self, stages: Stages) -> None:
        program = await asyncio.to_thread(builds.binary, "kwok")
        config = self._bed.folder / "kwok.yaml"
        config.write_text(stages.render(program.parent / "kustomize" / "stage"))
        identity = self._bed.kubeconfig_for_user("kwok", [ADMIN_GROUP])
        selector = ",".join(f"{key}={value}" for key, value in ANNOTATION.items())
        await self._bed.start(
            "kwok",
            [
                program,
                f"--kubeconfig={identity}",
                f"--config={config}",
                "--manage-all-nodes=false",
                f"--manage-nodes-with-annotation-selector={selector}",
                "--node-lease-duration-seconds=40",
                "--cidr=10.128.0.0/16",
                f"--server-address=127.0.0.1:{self._bed.free_port()}",
            ],
        )


def node(
    name: str,
    capacity: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """Return the Node object of a home node; `capacity` adds to a 32-core default."""
    room = CAPACITY | dict(capacity or {})
    usual = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "kwok"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": dict(ANNOTATION),
            "labels": usual | dict(labels or {}),
        },
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"capacity": room, "allocatable": room},
    }


def is_usable(node: Mapping[str, Any]) -> bool:
    """Whether a Node is Ready and its start-up taint is gone."""
    conditions = node["status"].get("conditions", [])
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    taints = {taint["key"] for taint in node["spec"].get("taints", [])}
    return ready and "node.kubernetes.io/not-ready" not in taints
