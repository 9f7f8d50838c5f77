"""The quota bridge on a real Kueue: quotas follow the nodes, and jobs notice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.controllers import means_of
from tests.e2e.shared.cluster import API, BUILT, GPU, QUEUES, SharedCluster
from tests.e2e.workloads import Workloads, job
from tests.rig.polling import eventually
from tests.support.eventually import running
from vk_provider.bursting.picture import Selection
from vk_provider.bursting.quota import QuotaRules
from vk_provider.controllers.cluster_view import ClusterView
from vk_provider.controllers.means import ControllerMeans
from vk_provider.controllers.quota_bridge import QuotaBridge
from vk_provider.settings_bursting_quota_bridge import QuotaBridgeSettings

pytestmark = pytest.mark.asyncio(loop_scope="session")
PROGRAMS = BUILT

ALL = 8
QUICK = QuotaRules(
    queues=frozenset({"train"}), hold_down_seconds=0.5, shrink_every_seconds=0.5, shrink_step=2
)


@asynccontextmanager
async def bridge(
    cluster: SharedCluster, rules: QuotaRules = QUICK, *, dry_run: bool = False
) -> AsyncIterator[ControllerMeans]:
    """The controller runs, with the shipped rights."""
    settings = QuotaBridgeSettings(True, dry_run, 0.3, rules)
    async with means_of(cluster.bed, cluster.kubeconfig) as means:
        view = ClusterView(means.client, Selection())
        async with running(view.run()), running(QuotaBridge(means, view, settings).run()):
            yield means


@pytest_asyncio.fixture(loop_scope="session")
async def train(cluster: SharedCluster) -> AsyncIterator[SharedCluster]:
    """A training queue whose quota somebody wrote down when there were two GPUs."""
    await cluster.queue("train", 2)
    yield cluster
    await cluster.drop("train")


async def quota_is(cluster: SharedCluster, gpus: int) -> None:
    """Wait until the quota has this value."""

    async def probe() -> bool:
        return await cluster.quota("train") == gpus

    await eventually(probe, f"a quota of {gpus}", seconds=30)


async def cordon(cluster: SharedCluster, node: str, is_cordoned: bool) -> None:
    """As `kubectl cordon` does."""
    patch = {"spec": {"unschedulable": is_cordoned}}
    await cluster.bed.request_json(
        "PATCH", f"/api/v1/nodes/{node}", patch, content_type="application/merge-patch+json"
    )


def training(name: str, gpus: int) -> Mapping[str, Any]:
    """A job of one pod for the queue."""
    container = {
        "name": "main",
        "image": "registry.example/train:1",
        "resources": {"requests": {GPU: str(gpus)}, "limits": {GPU: str(gpus)}},
    }
    template = {"spec": {"priorityClassName": "training", "containers": [container]}}
    made = job(name, template, parallelism=2, completions=2, suspend=True)
    made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "train"}
    return made


async def admitted(jobs: Workloads, name: str) -> bool:
    """Whether Kueue has let a job in."""
    found = await jobs.bed.get_json(jobs.path("jobs", name))
    return not found["spec"].get("suspend")


async def removed(jobs: Workloads, name: str) -> None:
    """Delete a job with its pods: by default they would be orphaned."""
    path = f"{jobs.path('jobs', name)}?propagationPolicy=Background"
    await jobs.bed.request_json("DELETE", path)


async def test_a_rehearsal_tells_and_writes_nothing(train: SharedCluster) -> None:
    """It is the default."""
    async with bridge(train, dry_run=True):

        async def told() -> list[str]:
            return await train.events("train", "QuotaChanged")

        (message,) = await eventually(told, "an Event", seconds=30)
    assert message.startswith(f"dry run: flavor train: {GPU} 2 -> {ALL}: 4 of 4 nodes")
    assert await train.quota("train") == 2


async def test_a_job_that_quota_alone_kept_out_gets_in(
    train: SharedCluster, jobs: Workloads
) -> None:
    """Its GPUs were there all the time."""
    await jobs.create("jobs", dict(training("wide", 2)))
    assert not await admitted(jobs, "wide")

    async with bridge(train):
        await quota_is(train, ALL)
        await eventually(lambda: admitted(jobs, "wide"), "the job is admitted", seconds=30)
    await removed(jobs, "wide")


async def test_a_quota_shrinks_in_steps_and_not_below_what_is_reserved(
    train: SharedCluster, jobs: Workloads
) -> None:
    """All nodes are cordoned in the end, while a job holds four GPUs."""
    async with bridge(train) as means:
        await quota_is(train, ALL)
        await jobs.create("jobs", dict(training("big", 2)))
        await eventually(lambda: admitted(jobs, "big"), "the job is admitted", seconds=30)
        for node in ("home-3", "home-4"):
            await cordon(train, node, True)
        await quota_is(train, 4)
        changes = means.metrics.bursting.quota_changes.labels("train", "train")
        assert changes._value.get() == 3  # up once, down twice
        await cordon(train, "home-2", True)
        await cordon(train, "home-1", True)
        for _ in range(20):
            assert await train.quota("train") == 4
            await asyncio.sleep(0.1)
        for node in ("home-1", "home-2", "home-3", "home-4"):
            await cordon(train, node, False)
        await quota_is(train, ALL)
        await train.event("train", "QuotaChanged", "is cordoned")
    await removed(jobs, "big")


async def test_a_queue_that_was_stopped_by_hand_is_left_alone(train: SharedCluster) -> None:
    """And an Event says so."""
    await train.bed.request_json(
        "PATCH",
        f"{QUEUES}/train",
        {"spec": {"stopPolicy": "Hold"}},
        content_type="application/merge-patch+json",
    )
    async with bridge(train) as means:

        async def told() -> list[str]:
            return await train.events("train", "QuotaLeftAlone")

        messages = await eventually(told, "an Event", seconds=30)
        refused = means.metrics.bursting.quota_refused.labels("train", "train")
        assert refused._value.get() == 1
    assert "its stopPolicy is Hold" in messages[0]
    assert await train.quota("train") == 2


async def test_a_sick_node_is_worth_nothing_to_training(train: SharedCluster) -> None:
    """The taint of the health controller is one that the flavor does not tolerate."""
    taint = {"key": "vk-provider.dev/gpu-health", "value": "training-unfit", "effect": "NoSchedule"}
    path = "/api/v1/nodes/home-4"
    patch: dict[str, Any] = {"spec": {"taints": [taint]}}
    merge = "application/merge-patch+json"
    async with bridge(train):
        await quota_is(train, ALL)
        await train.bed.request_json("PATCH", path, patch, content_type=merge)
        await quota_is(train, ALL - 2)
        patch["spec"]["taints"] = []
        await train.bed.request_json("PATCH", path, patch, content_type=merge)
        await quota_is(train, ALL)


async def test_what_kueue_calls_its_version_is_what_is_written(train: SharedCluster) -> None:
    """The served version is asked for, not assumed."""
    group = await train.bed.get_json("/apis/kueue.x-k8s.io")
    assert API.endswith(group["preferredVersion"]["version"])
