"""The door, the storm guard and the budget, as pods and the Node meet them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.integration.loops.bench import START, Bench, pod
from vk_provider.testing.builders import make_container, uid_of
from vk_provider.testing.fake import FakeBackend

FULL = {"fake": {"offers": [{"name": "cpu", "capacity": 0}], "createSeconds": 1}}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-1"}


def job_pod(bench: Bench, name: str) -> None:
    """A pod of a Job that could not ignore a failure: it waits for capacity."""
    owners = {"ownerReferences": [{**JOB, "controller": True}]}
    bench.bind(name, metadata=owners, restartPolicy="OnFailure")


def refill(cloud: FakeBackend) -> None:
    """From now on there is capacity without end."""
    offers = tuple(replace(offer, capacity=None) for offer in cloud.config.offers)
    cloud.config = replace(cloud.config, offers=offers)


async def test_no_capacity_closes_the_door_before_the_pod_fails() -> None:
    """Allocatable and taint first: the replacement comes within milliseconds."""
    async with Bench(FULL) as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Failed")
        assert bench.reason("web") == "OutOfCapacity"
        assert bench.taints() == {"vk-provider.dev/unavailable": "capacity"}
        writes = [(path, body) for verb, path, body in bench.api.calls if verb == "PATCH"]
        failed = next(i for i, (_, body) in enumerate(writes) if _phase(body) == "Failed")
        closed = next(i for i, (path, body) in enumerate(writes) if _taints(body))
        lowered = next(i for i, (path, body) in enumerate(writes) if _pods(body) == "1")
        assert lowered < closed < failed


def _phase(body: Any) -> Any:
    return body.get("status", {}).get("phase")


def _taints(body: Any) -> Any:
    return body.get("spec", {}).get("taints")


def _pods(body: Any) -> Any:
    return body.get("status", {}).get("allocatable", {}).get("pods")


async def next_creates(bench: Bench) -> int:
    """Wait for the next create calls; how many there were by then in all."""
    count = bench.cloud.calls["create"]
    await bench.until(lambda: bench.cloud.calls["create"] > count)
    return bench.cloud.calls["create"]


async def test_a_reopening_door_lets_fifty_waiting_pods_in_one_two_four() -> None:
    """No stampede: the head-room doubles with each success, whoever waits."""
    async with Bench(FULL) as bench:
        bench.bind("first")
        await bench.until(lambda: bench.phase("first") == "Failed")
        refill(bench.cloud)
        await bench.until(lambda: not bench.taints())
        assert bench.allocatable() == 1
        assert bench.value("door_state", node="burst", state="reopening") == 1
        before = bench.cloud.calls["create"]
        for number in range(50):
            bench.bind(f"web-{number}")
        steps = [await next_creates(bench) - before for _ in range(4)]
        assert steps == [1, 3, 7, 15]
        await bench.until(lambda: bench.api.phases()["Running"] == 50)
        assert bench.value("pods", node="burst", phase="Running") == 50


async def test_a_failed_probe_closes_again_for_longer() -> None:
    """Doubled cool-down; the waiting pods of the Job are neither failed nor tried meanwhile."""
    async with Bench(FULL) as bench:
        job_pod(bench, "train-0")
        await bench.until(lambda: bool(bench.taints()))
        first = await bench.until(lambda: not bench.taints())
        await bench.until(lambda: bool(bench.taints()))
        second = await bench.until(lambda: not bench.taints(), 200)
        assert second > 1.5 * first
        assert bench.phase("train-0") == "Pending"
        assert bench.waiting("train-0")["reason"] == "ProviderUnavailable"
        refill(bench.cloud)
        await bench.until(lambda: bench.phase("train-0") == "Running", 200)


async def test_head_room_reaches_the_api_server_with_each_create() -> None:
    """Allocatable is published while the door reopens, not only when it opens or closes."""
    async with Bench(FULL) as bench:
        bench.bind("first")
        await bench.until(lambda: bench.phase("first") == "Failed")
        refill(bench.cloud)
        await bench.until(lambda: not bench.taints())
        bench.bind("a")
        await bench.until(lambda: bench.cloud.calls["create"] > 1)
        await bench.settle(0.1)
        assert bench.allocatable() == 1  # a itself, and no place while its create is under way
        await bench.until(lambda: bench.phase("a") == "Running")
        await bench.until(lambda: bench.allocatable() == 3, 1.0)


async def test_a_pod_bound_a_moment_ago_takes_its_place_in_allocatable() -> None:
    """Its create has not begun, and the Node must not offer its place to a second pod."""
    async with Bench(FULL) as bench:
        bench.bind("first")
        await bench.until(lambda: bench.phase("first") == "Failed")
        refill(bench.cloud)
        await bench.until(lambda: not bench.taints())
        bench.api.delay = 0.5
        bench.bind("a")
        await bench.settle(0.2)
        bench.node.threshold.board.changed.set()
        await bench.settle(1.2)
        assert bench.allocatable() == 1


async def test_the_storm_guard_paces_a_crash_loop() -> None:
    """A ReplicaSet answers each Failed pod at once: at most a handful fail, the rest waits."""
    async with Bench({"fake": {"runSeconds": 0.1, "exitCode": 1}}) as bench:
        made = 0
        while made == 0 or bench.shell.clock.now().timestamp() < START.timestamp() + 60:
            if not bench.api.phases()["Pending"] and not bench.api.phases()["Running"]:
                bench.bind(f"web-{made}")
                made += 1
            await bench.settle(0.02)
        assert bench.api.phases()["Failed"] <= 12
        held = bench.waiting(f"web-{made - 1}")
        assert held["reason"] == "CreateBackOff"
        assert bench.value("storm_guard_held_pods", node="burst") == 1
        assert "BackOff" in bench.api.events()


def failed_pod(
    name: str, seconds_ago: int, reason: str | None = "ContainerExited"
) -> dict[str, Any]:
    """A pod that a predecessor of ours marked Failed."""
    at = START.replace(year=2025, month=12, day=31, hour=23, minute=59, second=60 - seconds_ago)
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": at.isoformat()}
    status: Mapping[str, Any] = {"phase": "Failed", "reason": reason, "conditions": [ready]}
    return {**pod(name), "status": status}


@pytest.mark.parametrize("reason", ["ContainerExited", None])
async def test_the_storm_guard_remembers_over_a_restart(reason: str | None) -> None:
    """Its memory are the Failed pods: five of one owner a moment ago hold the sixth. So do those
    whose container failed, which have no reason."""
    bench = Bench()
    for number in range(5):
        bench.api.store.put("pods", failed_pod(f"old-{number}", 5, reason))
    bench.bind("new")
    bench.bind("other", metadata={"ownerReferences": []})
    await bench.start()
    await bench.until(lambda: bench.phase("other") == "Running")
    assert bench.waiting("new")["reason"] == "CreateBackOff"
    await bench.until(lambda: bench.phase("new") == "Running")
    await bench.stop()


async def test_what_was_refused_on_sight_is_remembered_over_a_restart() -> None:
    """Also long after it came, and for want of any resource."""
    containers = [make_container(resources={"requests": {"cpu": "2k"}})]
    bench = Bench()
    await bench.start()
    for number in range(5):
        bench.bind(f"old-{number}", containers=containers)
    await bench.until(lambda: bench.api.phases()["Failed"] == 5)
    assert bench.reason("old-0") == "OutOfcpu"
    await bench.stop()
    bench.bind("new")
    await bench.start()
    await bench.until(lambda: bool(bench.waiting("new")))
    assert bench.waiting("new")["reason"] == "CreateBackOff"
    await bench.stop()


async def test_failures_that_were_not_ours_are_not_remembered() -> None:
    """Evicted by somebody, or failed at home: no reason to hold anybody."""
    bench = Bench()
    for number in range(5):
        bench.api.store.put("pods", failed_pod(f"old-{number}", 5, reason="Evicted"))
    bench.bind("new")
    await bench.start()
    took = await bench.until(lambda: bench.phase("new") == "Running")
    assert took < 2.0
    await bench.stop()


DEAR = {"fake": {"offers": [{"name": "cpu", "usdPerHour": 10}], "endedIsFree": False}}


async def test_the_budget_is_never_passed_and_closes_the_door() -> None:
    """Three at once with money for two: the third is told why, and the taint says budget."""
    async with Bench(DEAR, placement={"budget": {"usdPerHour": 25}}) as bench:
        for name in "abc":
            bench.bind(name)
        await bench.until(lambda: bench.api.phases()["Running"] == 2)
        await bench.until(lambda: bench.api.phases()["Failed"] == 1)
        assert bench.cloud.calls["create"] == 2
        failed = next(name for name in "abc" if bench.phase(name) == "Failed")
        assert (
            "budget of 25.00 USD/h is taken by what runs"
            in bench.api.pod(failed)["status"]["message"]
        )
        assert bench.taints() == {"vk-provider.dev/unavailable": "budget"}
        await bench.settle(120)
        assert bench.taints() == {"vk-provider.dev/unavailable": "budget"}


async def test_money_that_comes_back_reopens_the_door() -> None:
    """An instance ends, a list shows it, and the next pod may come."""
    async with Bench(DEAR, placement={"budget": {"usdPerHour": 10}}) as bench:
        bench.bind("a")
        await bench.until(lambda: bench.phase("a") == "Running")
        bench.bind("b")
        await bench.until(lambda: bench.phase("b") == "Failed")
        bench.delete("a", 0)
        await bench.until(lambda: bench.phase("a") == "Gone")
        await bench.until(lambda: not bench.taints())
        bench.bind("c")
        await bench.until(lambda: bench.phase("c") == "Running")


async def test_a_create_that_made_nothing_gives_its_money_back() -> None:
    """Refused by the backend: the reservation goes, and the other pod gets it."""
    async with Bench(DEAR, placement={"budget": {"usdPerHour": 10}}) as bench:
        annotations = {"fake.vk-provider.dev/rejected": "no"}
        bench.bind("a", metadata={"annotations": annotations})
        await bench.until(lambda: bench.phase("a") == "Failed")
        bench.bind("b")
        await bench.until(lambda: bench.phase("b") == "Running")
        assert bench.node.threshold.spending.budget.rate() == 10.0
        assert uid_of("a") != uid_of("b")
