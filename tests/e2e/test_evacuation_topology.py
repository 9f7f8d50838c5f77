"""Topology-aware Kueue lets no job in while plain pods hold its GPUs: room is made beforehand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

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
from tests.support.eventually import running

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def bed() -> AsyncIterator[ControlPlane]:
    """A control plane whose queue looks for nodes before it reserves quota."""
    async with ControlPlane() as found:
        await stage.prepare(found, gpus=GPUS, stages=Stages(complete_jobs=False))
        await controllers.install(found, ["bursting", "evacuation"])
        async with kueue(found, topology_aware=True):
            await create(found, _queue())
            yield found


def _queue() -> list[Json]:
    topology = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Topology",
        "metadata": {"name": "host"},
        "spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]},
    }
    quota = {"cpu": "100", "memory": "1Ti", stage.GPU: str(GPUS)}
    objects = queue_of(QUEUE, quota, stage.POOL)
    objects[0]["spec"]["topologyName"] = "host"
    return [topology, *objects]


async def test_a_job_that_a_topology_keeps_out_gets_room(bed: ControlPlane) -> None:
    """Kueue admits it by itself once inference is elsewhere; no replica is missed."""
    workloads = Workloads(bed, "default")
    rules = stage.rules(admissionCheck={"topology": True, "deadlineSeconds": 120})
    async with AsyncExitStack() as stack:
        node = NodeUnderTest(bed, "topology", stage.SPEC, beside=[rules])
        await stack.enter_async_context(node)
        await serving(node, workloads)
        least = Least(workloads, node.name)
        _ = await stack.enter_async_context(running(least.run()))

        await runs(workloads, await begin_training(workloads))

        assert least.ready == GPUS
        await stage.placed(workloads, node.name, (0, GPUS))
