"""A job of the real Kueue is held until inference is Ready elsewhere: no replica is missed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e import bursting_stage as stage
from tests.e2e import controllers
from tests.e2e.evacuating import GPUS, QUEUE, Least, begin_training, runs, serving
from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.workloads import Json, Workloads
from tests.rig.control_plane import ControlPlane
from tests.rig.kueue import create, kueue, queue_of
from tests.rig.kwok import Stages
from tests.rig.polling import eventually
from tests.support.eventually import running

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHECK = "make-room"
ANNOTATION = "vk-provider.dev/evacuation"
COST = "controller.kubernetes.io/pod-deletion-cost"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bed() -> AsyncIterator[ControlPlane]:
    """A control plane of its own, since Kueue's webhooks are everybody's."""
    async with ControlPlane() as found:
        # Training runs until it is deleted.
        await stage.prepare(found, gpus=GPUS, stages=Stages(complete_jobs=False))
        await controllers.install(found, ["bursting", "evacuation"])
        async with kueue(found):
            await create(found, _queue())
            yield found


def _queue() -> list[Json]:
    check = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "AdmissionCheck",
        "metadata": {"name": CHECK},
        "spec": {"controllerName": "vk-provider.dev/evacuation"},
    }
    quota = {"cpu": "100", "memory": "1Ti", stage.GPU: str(GPUS)}
    strategy = {"admissionChecks": [{"name": CHECK}]}
    objects = queue_of(QUEUE, quota, stage.POOL, admissionChecksStrategy=strategy)
    return [check, *objects]


def _autoscaler() -> Json:
    """It would lower the replicas at once to its maximum."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "chat", "namespace": "default"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": GPUS},
    }


@asynccontextmanager
async def _node(bed: ControlPlane, deadline: int, **spec: Any) -> AsyncIterator[NodeUnderTest]:
    """A node that takes part, and training that is held for so many seconds."""
    rules = stage.rules(
        admissionCheck={"enabled": True, "deadlineSeconds": deadline},
        homecoming={"surge": True, "maxInFlight": 2, "maxInFlightPerWorkload": 2},
    )
    async with NodeUnderTest(bed, f"held-{deadline}", stage.SPEC | spec, beside=[rules]) as node:
        yield node


async def _settled(workloads: Workloads) -> Json:
    async def probe() -> Json | None:
        found = await workloads.get("deployments", "chat")
        is_done = found is not None and ANNOTATION not in found["metadata"].get("annotations", {})
        return found if is_done else None

    return await eventually(probe, "nothing of the move is left on the Deployment")


@pytest_asyncio.fixture(loop_scope="session")
async def at_queue(bed: ControlPlane) -> AsyncIterator[Workloads]:
    """The namespace whose LocalQueue feeds the ClusterQueue; empty again afterwards."""
    workloads = Workloads(bed, "default")
    yield workloads
    await workloads.kubectl("delete", "jobs,deployments,hpa", "--all", "--timeout=60s")
    await workloads.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait")


async def test_inference_moves_out_before_training_comes_and_home_after_it(
    bed: ControlPlane, at_queue: Workloads
) -> None:
    """All replicas are Ready outside before the first leaves home, although the leader is killed
    in between and an autoscaler minds the number, and nothing is left behind."""
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(_node(bed, 120))
        await serving(node, at_queue)
        await bed.apply([_autoscaler()])
        least = Least(at_queue, node.name)
        _ = await stack.enter_async_context(running(least.run()))

        job = await begin_training(at_queue)
        await at_queue.until("deployments", "chat", lambda d: d["spec"]["replicas"] == 2 * GPUS)
        await node.restart()
        await runs(at_queue, job)

        assert least.ready == GPUS
        deployment = await _settled(at_queue)
        assert deployment["spec"]["replicas"] == GPUS
        await stage.placed(at_queue, node.name, (0, GPUS))
        costs = {p["metadata"]["annotations"].get(COST) for p in await at_queue.pods("app=chat")}
        assert costs <= {None, "-100"}
        await at_queue.kubectl("delete", "job", "train")
        await stage.placed(at_queue, node.name, (GPUS, 0), 90)
        deployment = await _settled(at_queue)
        assert (least.ready, deployment["spec"]["replicas"]) == (GPUS, GPUS)
        # Every write of ours is one more: four for the way out, five for each pair on its way home.
        assert deployment["metadata"]["generation"] <= 1 + 4 + 2 * 5
        path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/chat"
        scaler = (await bed.request_json("GET", path))["spec"]
        assert (scaler["minReplicas"], scaler["maxReplicas"]) == (1, GPUS)


async def test_at_the_deadline_training_wins(bed: ControlPlane, at_queue: Workloads) -> None:
    """There is no place outside: the job waits for its time, then inference is preempted."""
    full = {"capacity": {"cpu": "1", "memory": "1Gi", "pods": "1"}}
    async with _node(bed, 4, **full) as node:
        await serving(node, at_queue)

        job = await begin_training(at_queue, "too-late")
        await runs(at_queue, job)

        deployment = await _settled(at_queue)
        assert deployment["spec"]["replicas"] == GPUS
        assert "the deadline of 4 s has passed with" in await _said(bed, job)


async def _said(bed: ControlPlane, job: Json) -> str:
    """What our check says of this very job."""
    path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
    for workload in (await bed.request_json("GET", path))["items"]:
        owners = [owner["uid"] for owner in workload["metadata"].get("ownerReferences", [])]
        if job["metadata"]["uid"] in owners:
            checks = workload["status"]["admissionChecks"]
            return str(next(one["message"] for one in checks if one["name"] == CHECK))
    return ""
