"""The same scenarios on every backend: fake, process, RunPod, Modal, another cluster.

What a user does and sees is the same; where a backend can't do a thing its user is told so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.node_under_test import condition
from tests.e2e.other import Other
from tests.e2e.stages import REFUSED_FIELD, STAGES, Beds, Stage
from tests.e2e.workloads import Workloads, deployment, phase_of, reason_of, state_of
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=list(STAGES))
async def stage(
    control_plane: ControlPlane,
    other: Other,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> AsyncIterator[Stage]:
    """Each backend in turn, with a node of its own."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    beds = Beds(control_plane, folder, other)
    async with STAGES[request.param](beds) as made:
        yield made


async def instances(stage: Stage) -> float:
    """How many the node's last list showed."""
    return await stage.node.metric("vk_provider_instances", node=stage.node.name)


async def settle(stage: Stage, count: int) -> None:
    """Wait until there are exactly so many."""

    async def so() -> bool:
        return await instances(stage) == count

    await eventually(so, f"{count} instances", seconds=40)


async def running(stage: Stage, workloads: Workloads) -> None:
    """A bare pod ``app``."""
    await workloads.create_pod("app", stage.template())
    await workloads.pod_in("app", "Running", seconds=60)


async def end(stage: Stage, workloads: Workloads, name: str = "app") -> None:
    """Delete a pod, and see everything of it gone."""
    await workloads.delete("pods", name)
    await workloads.gone("pods", name, seconds=60)


async def test_a_deployment_is_created_and_becomes_ready(
    stage: Stage, workloads: Workloads
) -> None:
    """An instance for each pod; scaled to zero nothing is left."""
    await workloads.create("deployments", deployment("web", 2, stage.template()))

    await workloads.ready("deployments", "web", 2, seconds=60)

    for pod in await workloads.pods("app=web"):
        assert phase_of(pod) == "Running"
        assert condition(pod, "Ready")["status"] == "True"
        assert "running" in state_of(pod)
    await settle(stage, 2)
    await workloads.kubectl("scale", "deployment", "web", "--replicas=0")
    await settle(stage, 0)
    assert await stage.ids() == set()


async def test_the_log_is_read(stage: Stage, workloads: Workloads) -> None:
    """By kubectl at home."""
    await running(stage, workloads)

    async def printed() -> bool:
        return "started" in await workloads.kubectl("logs", "app", check=False)

    await eventually(printed, "its first line", seconds=30)
    await end(stage, workloads)


async def test_a_command_is_run_or_refused_with_a_sentence(
    stage: Stage, workloads: Workloads
) -> None:
    """The exit code is the command's."""
    await running(stage, workloads)

    said = await workloads.kubectl("exec", "app", "--", "sh", "-c", "echo $((6*7))", check=False)
    failed = await workloads.kubectl("exec", "app", "--", "sh", "-c", "exit 3", check=False)

    if stage.cannot_exec:
        assert stage.cannot_exec in said
    else:
        assert said == "42\n"
        assert "exit code 3" in failed
    await end(stage, workloads)


async def test_a_deleted_pod_takes_its_instance_along(stage: Stage, workloads: Workloads) -> None:
    """The object goes only after it."""
    await running(stage, workloads)
    await settle(stage, 1)

    await end(stage, workloads)

    assert await stage.ids() == set()
    await settle(stage, 0)


async def test_a_lost_instance_fails_its_pod(stage: Stage, workloads: Workloads) -> None:
    """With a disruption that a Job may ignore."""
    await workloads.create_pod("app", stage.mortal())
    home = await workloads.pod_in("app", "Running", seconds=60)

    await stage.lose(workloads, home)

    failed = await workloads.pod_in("app", "Failed", seconds=60)
    assert reason_of(failed) == "ProviderLost"
    assert condition(failed, "DisruptionTarget")["status"] == "True"
    assert "terminated" in state_of(failed)
    await end(stage, workloads)


async def test_what_can_not_be_honoured_is_refused_by_its_field(
    stage: Stage, workloads: Workloads
) -> None:
    """Before anything is made."""
    await workloads.create_pod("app", stage.refused())

    failed = await workloads.pod_in("app", "Failed", seconds=60)

    assert reason_of(failed) == "Unsupported"
    assert REFUSED_FIELD in failed["status"]["message"]
    assert await stage.ids() == set()
    await end(stage, workloads)


async def test_a_restart_of_ours_doubles_nothing(stage: Stage, workloads: Workloads) -> None:
    """Killed in the midst: the same instances, or, where they died with us, as many new ones."""
    await workloads.create("deployments", deployment("web", 2, stage.template()))
    await workloads.ready("deployments", "web", 2, seconds=60)
    before = await stage.ids()
    names = {pod["metadata"]["name"] for pod in await workloads.pods("app=web")}

    await stage.node.restart(kill=True)
    await settle(stage, 2)
    await workloads.ready("deployments", "web", 2, seconds=90)

    if stage.outlives_node:
        assert await stage.ids() == before
        after = await workloads.pods("app=web")
        assert {pod["metadata"]["name"] for pod in after} == names
        assert {phase_of(pod) for pod in after} == {"Running"}
    await workloads.delete("deployments", "web")
    await settle(stage, 0)


async def test_an_outage_of_theirs_kills_nobody(stage: Stage, workloads: Workloads) -> None:
    """Pods stay as they are; new ones start once it is back; nothing is there twice."""
    await running(stage, workloads)
    before = await stage.ids()

    await stage.go()
    await workloads.create("deployments", deployment("late", 1, stage.template()))
    await asyncio.sleep(3)
    still = await workloads.get("pods", "app")
    await stage.come_back()

    assert still is not None
    assert phase_of(still) == "Running"
    assert condition(still, "Ready")["status"] == "True"
    await workloads.ready("deployments", "late", 1, seconds=90)
    await settle(stage, 2)
    assert before <= await stage.ids()
    await workloads.delete("deployments", "late")
    await end(stage, workloads)
    await settle(stage, 0)
