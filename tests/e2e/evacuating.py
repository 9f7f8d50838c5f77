"""Inference at home and a training job of Kueue's that wants all of it: for tests of evacuation.

Fed by the tests; asks the API server what a user would see.
"""

from __future__ import annotations

import asyncio

from tests.e2e import bursting_stage as stage
from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.workloads import Json, Workloads, job
from tests.rig.polling import eventually

GPUS = 4
QUEUE = "evacuated"


def training(name: str) -> Json:
    """A job that wants every GPU of the home node. Kueue knows a job's Workload by the job's name,
    so a name that was used lets the next one in."""
    body = job(name, stage.training(GPUS), parallelism=1, completions=1)
    body["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": QUEUE}
    body["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    return body


class Least:
    """The fewest Ready replicas that were ever seen."""

    def __init__(self, workloads: Workloads, node: str) -> None:
        self.ready = GPUS
        self._workloads = workloads
        self._node = node

    async def run(self) -> None:
        """Look many times a second."""
        while True:
            home, outside = await stage.where(self._workloads, self._node)
            self.ready = min(self.ready, home + outside)
            await asyncio.sleep(0.02)


async def begin_training(workloads: Workloads, name: str = "train") -> Json:
    """Create the job; return it."""
    return await workloads.create("jobs", training(name))


async def runs(workloads: Workloads, created: Json, seconds: float = 60.0) -> None:
    """Wait until this very job runs."""
    selector = f"batch.kubernetes.io/controller-uid={created['metadata']['uid']}"

    async def probe() -> bool:
        pods = await workloads.pods(selector)
        return any(pod["status"]["phase"] == "Running" for pod in pods)

    await eventually(probe, "training runs at home", seconds=seconds)


async def serving(node: NodeUnderTest, workloads: Workloads) -> None:
    """Start inference, and wait until all of it is Ready at home."""
    await stage.gate_is(node, "hold")
    await workloads.create("deployments", stage.inference(GPUS))
    await stage.placed(workloads, node.name, (GPUS, 0))
