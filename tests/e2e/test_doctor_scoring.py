"""`vk-provider doctor scoring` before the real scheduler: does home win, and is it said if not?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from tests.e2e import bursting_stage as stage
from tests.e2e.node_under_test import COMMAND, NodeUnderTest
from tests.e2e.workloads import Json, Workloads
from tests.rig.control_plane import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="session")

HUGE = {"cpu": "100000", "memory": "400Ti", "nvidia.com/gpu": "1000", "pods": "1000"}


@pytest_asyncio.fixture(loop_scope="session")
async def home(control_plane: ControlPlane) -> AsyncIterator[ControlPlane]:
    """One home node with four GPUs."""
    await stage.prepare(control_plane)
    yield control_plane


async def doctor(bed: ControlPlane, *flags: str) -> tuple[int, str]:
    """Run the checkup; exit code and what it said."""
    process = await asyncio.create_subprocess_exec(
        COMMAND, "doctor", "scoring", *flags, "--kubeconfig", bed.kubeconfig,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


def configuration(node: NodeUnderTest, folder: Path) -> str:
    """The node's documents with the stage's Bursting document beside them."""
    file = folder / "scoring.yaml"
    file.write_text(yaml.safe_dump_all([node.document(), stage.rules()]))
    return str(file)


async def test_home_wins_with_both_preferences(
    home: ControlPlane, workloads: Workloads, tmp_path: Path
) -> None:
    """The probes go home, one by one, and leave nothing behind."""
    small = {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "20"}
    spec: Json = stage.SPEC | {"capacity": small}
    async with NodeUnderTest(home, "preferred", spec, beside=[stage.rules()]) as node:
        code, said = await doctor(home, "-f", configuration(node, tmp_path), "--probes", "4")

    assert "all 4 probes went home" in said
    assert "TaintToleration: home (gate-home-0) 300, outside" in said
    assert code == 0, said
    pods = await home.get_json("/api/v1/namespaces/default/pods")
    assert [p for p in pods["items"] if "scoring-probe" in p["metadata"]["name"]] == []


async def test_an_empty_giant_without_any_preference_wins_and_it_is_said(
    home: ControlPlane, workloads: Workloads, tmp_path: Path
) -> None:
    """With what is wrong about the node and about the pod, and exit code 1."""
    template = stage.inference(1)["spec"]["template"]
    template["metadata"]["labels"] = dict(stage.BURST)
    del template["spec"]["affinity"]
    template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "6"
    await workloads.create_pod("plain", template)
    async with NodeUnderTest(home, "giant", {"capacity": HUGE}) as node:
        code, said = await doctor(
            home, "-f", configuration(node, tmp_path), "--probes", "3",
            "--pod", f"{workloads.namespace}/plain",
        )  # fmt: skip

    assert "probes went outside although home had room" in said
    assert "has no taint vk-provider.dev/prefer-home" in said
    assert "has no preferred node affinity" in said
    assert "times the cpu of the largest home node" in said
    assert code == 1, said
