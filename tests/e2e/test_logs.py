"""`kubectl logs` through the real API server, to the node's kubelet port."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime

import pytest

from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.workloads import Workloads, pod_template, steered
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

NODE_SPEC = {"backends": [{"name": "fake", "provider": "fake", "config": {"endedIsFree": False}}]}


async def lines_of(workloads: Workloads, *arguments: str) -> list[str]:
    """What `kubectl logs` prints."""
    return (await workloads.kubectl("logs", *arguments)).splitlines()


async def at_least(workloads: Workloads, count: int, *arguments: str) -> list[str]:
    """Wait until a log has so many lines; return them."""

    async def probe() -> list[str]:
        found = await lines_of(workloads, *arguments)
        return found if len(found) >= count else []

    return await eventually(probe, f"{count} lines", seconds=20)


async def test_prints_what_was_written(node: NodeUnderTest, workloads: Workloads) -> None:
    """From the first line on, and with --tail only the last ones."""
    await workloads.create_pod("app", pod_template(node.name, steered(log_every_seconds=0.2)))
    await workloads.pod_in("app", "Running")

    lines = await at_least(workloads, 4, "app")

    assert lines[:4] == ["started", "line 1", "line 2", "line 3"]
    tail = await lines_of(workloads, "app", "--tail=2")
    assert len(tail) == 2
    assert "started" not in tail
    assert await lines_of(workloads, "app", "--tail=0") == []
    assert await workloads.kubectl("logs", "app", "--limit-bytes=3") == "sta"


async def test_timestamps_and_since(node: NodeUnderTest, workloads: Workloads) -> None:
    """RFC 3339 before each line; --since-time and --since leave older ones out."""
    await workloads.create_pod("app", pod_template(node.name, steered(log_every_seconds=1)))
    await workloads.pod_in("app", "Running")

    lines = await at_least(workloads, 4, "app", "--timestamps")

    stamps = [datetime.fromisoformat(line.split(" ", 1)[0]) for line in lines]
    assert stamps == sorted(stamps)
    assert [line.split(" ", 1)[1] for line in lines[:2]] == ["started", "line 1"]
    third = lines[2].split(" ", 1)[0]
    since = await lines_of(workloads, "app", f"--since-time={third}")
    assert since[0] in ("line 2", "line 1")  # --since-time is cut to whole seconds
    assert "started" not in await lines_of(workloads, "app", "--since=2s")


async def test_follow_ends_with_the_container(node: NodeUnderTest, workloads: Workloads) -> None:
    """Lines arrive as they are written; the stream ends by itself (C063)."""
    notes = steered(log_every_seconds=0.5, run_seconds=2.6)
    await workloads.create_pod("app", pod_template(node.name, notes, restartPolicy="Never"))
    await workloads.pod_in("app", "Running")

    lines = await asyncio.wait_for(lines_of(workloads, "app", "-f"), 15)

    assert lines == ["started", *(f"line {number}" for number in range(1, 6))]


async def test_follow_is_live(node: NodeUnderTest, workloads: Workloads) -> None:
    """A line is there while the stream is open; a client that hangs up ends it."""
    await workloads.create_pod("app", pod_template(node.name, steered(log_every_seconds=0.5)))
    await workloads.pod_in("app", "Running")
    found: list[str] = []

    async def read() -> None:
        path = workloads.path("pods", "app") + "/log?follow=true"
        async for line in workloads.bed.stream_lines(path):
            found.append(line)
            if len(found) == 4:
                return

    await asyncio.wait_for(read(), 15)

    assert found[:2] == ["started", "line 1"]


async def test_log_of_an_ended_pod_stays(node: NodeUnderTest, workloads: Workloads) -> None:
    """Its instance is deleted, its last words are in the status, its log is kept (C077)."""
    notes = steered(log_every_seconds=0.2, run_seconds=1, exit_code=3)
    await workloads.create_pod("app", pod_template(node.name, notes, restartPolicy="Never"))
    pod = await workloads.pod_in("app", "Failed")

    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["message"].startswith("started\nline 1")
    lines = await lines_of(workloads, "app")
    assert lines[:3] == ["started", "line 1", "line 2"]
    assert await lines_of(workloads, "app", "--tail=1") == lines[-1:]
    assert await lines_of(workloads, "app", "-f") == lines


async def test_every_container_has_its_own_log(node: NodeUnderTest, workloads: Workloads) -> None:
    """Also init containers; a name that the pod has not is an error (C065)."""
    image = "registry.example/app:1"
    template = pod_template(
        node.name,
        steered(log_request="true"),
        containers=[{"name": "one", "image": image}, {"name": "two", "image": image}],
        initContainers=[{"name": "prepare", "image": image}],
    )
    await workloads.create_pod("app", template)
    await workloads.pod_in("app", "Running")

    for name in ("one", "two", "prepare"):
        lines = await lines_of(workloads, "app", "-c", name)
        assert f'"name":"{name}"' in lines[1]
    everything = await workloads.kubectl("logs", "app", "--all-containers", "--prefix")
    assert set(re.findall(r"\[pod/app/(\w+)\]", everything)) == {"one", "two", "prepare"}
    refused = await workloads.kubectl("logs", "app", "-c", "three", check=False)
    assert "container three is not valid for pod app" in refused


async def test_previous_says_that_there_is_none(node: NodeUnderTest, workloads: Workloads) -> None:
    """With a kubelet's words, not with an empty answer."""
    await workloads.create_pod("app", pod_template(node.name))
    await workloads.pod_in("app", "Running")

    said = await workloads.kubectl("logs", "app", "--previous", check=False)

    assert 'previous terminated container "main" in pod "app" not found' in said


async def test_log_before_the_start_says_why_not(node: NodeUnderTest, workloads: Workloads) -> None:
    """A container that waits has no log: its reason is in the answer."""
    await workloads.create_pod("app", pod_template(node.name, steered(start_after_seconds=60)))
    await workloads.waiting("app", "ContainerCreating")

    said = await workloads.kubectl("logs", "app", check=False)

    assert "is waiting to start: ContainerCreating" in said
