"""`vk-provider doctor kueue` against a real Kueue: a good cluster, and traps that say nothing."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from tests.e2e.node_under_test import COMMAND
from tests.e2e.shared.cluster import API, BUILT, GPU, SharedCluster
from tests.e2e.workloads import Workloads, job
from tests.rig.kueue import create
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")
PROGRAMS = BUILT

CONFIG = (
    {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "VirtualNode",
        "metadata": {"name": "checked"},
        "spec": {
            "capacity": {"cpu": "8", "memory": "8Gi", "pods": "8"},
            "backends": [{"name": "fake", "provider": "fake"}],
        },
    },
    {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "Bursting",
        "spec": {"training": {"priorityClasses": ["training"], "clusterQueues": ["checked"]}},
    },
)


@pytest_asyncio.fixture(loop_scope="session")
async def checked(cluster: SharedCluster) -> AsyncIterator[SharedCluster]:
    """A training queue with just the GPUs that there are."""
    await cluster.queue("checked", 8)
    yield cluster
    await cluster.drop("checked")


async def doctor(cluster: SharedCluster, kubeconfig: Path | None = None) -> tuple[int, str]:
    """Run the command; its exit code and what it printed, unwrapped."""
    file = cluster.bed.folder / "bursting.yaml"
    file.write_text(yaml.safe_dump_all(CONFIG))
    process = await asyncio.create_subprocess_exec(
        COMMAND, "doctor", "kueue", "-f", file,
        "--kubeconfig", str(kubeconfig or cluster.bed.kubeconfig),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await process.communicate()
    return process.returncode or 0, " ".join(out.decode().split())


async def active(cluster: SharedCluster) -> None:
    """Wait until Kueue has looked at the queue."""

    async def probe() -> bool:
        found = await cluster.bed.get_json(f"{API}/clusterqueues/checked")
        conditions = found.get("status", {}).get("conditions", [])
        return any(one["type"] == "Active" for one in conditions)

    await eventually(probe, "the queue is looked at", seconds=20)


async def test_a_good_cluster_passes(checked: SharedCluster) -> None:
    """With what was looked at; the manager's configuration is a file of the rig, so it is noted."""
    await active(checked)
    code, said = await doctor(checked)

    assert code == 0, said
    assert "ok Topology-Aware Scheduling: no flavor of the training queues has a topology" in said
    assert "ok ResourceFlavor checked: stands for home nodes alone" in said
    assert "ok Quotas: are what the nodes can give" in said
    assert "ok PriorityClass training: value 100000, preempts" in said
    assert said.endswith("0 errors, 0 warnings")


async def test_a_topology_is_found_and_explained(checked: SharedCluster) -> None:
    """With it no job is ever admitted while inference runs, and nothing says so."""
    topology = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Topology",
        "metadata": {"name": "host"},
        "spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]},
    }
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "checked"},
        "spec": {"nodeLabels": {"pool": "home"}, "topologyName": "host"},
    }
    await create(checked.bed, [topology, flavor])
    code, said = await doctor(checked)

    assert code == 1
    assert 'ERROR ResourceFlavor checked: has topologyName "host"' in said
    assert "-> take topologyName off the flavor" in said


async def test_a_job_without_a_priority_is_found(checked: SharedCluster, jobs: Workloads) -> None:
    """Kueue takes it in, and its pods would wait for ever."""
    resources = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    container = {"name": "main", "image": "registry.example/train:1", "resources": resources}
    made = job("meek", {"spec": {"containers": [container]}}, suspend=True)
    made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "checked"}
    await jobs.create("jobs", made)

    async def found() -> bool:
        code, said = await doctor(checked)
        return code == 1 and "has no priorityClassName on its pod template" in said

    try:
        await eventually(found, "the Workload is found", seconds=30, interval=0.5)
    finally:
        path = f"{jobs.path('jobs', 'meek')}?propagationPolicy=Background"
        await jobs.bed.request_json("DELETE", path)


async def test_what_may_not_be_read_is_said(checked: SharedCluster) -> None:
    """The node's own rights are no administrator's."""
    _, said = await doctor(checked, checked.kubeconfig)

    assert "warning priorityclasses: could not be read" in said


async def test_its_help_names_its_flags(checked: SharedCluster) -> None:
    """Like every command's."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "vk_provider", "doctor", "kueue", "--help",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()

    assert process.returncode == 0
    assert b"--kueue-namespace" in out
