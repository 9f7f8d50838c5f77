"""Who leads: never two at once, by their own clocks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.eventually import eventually, running
from tests.support.model_apiserver import ModelApiServer
from vk_provider.kube.client import KubeClient
from vk_provider.kube.election import ElectionTimings, LeaderElection

QUICK = ElectionTimings(lease_duration=1.0, renew_deadline=0.6, retry_period=0.05)
PATIENT = ElectionTimings(lease_duration=3.0, renew_deadline=2.0, retry_period=0.05)
"""For what must not happen although the machine may be slow."""
KEY = ("leases", "kube-system", "vk")


def candidate(
    client: KubeClient, identity: str, timings: ElectionTimings = QUICK
) -> LeaderElection:
    """One of several replicas."""
    return LeaderElection(client, "kube-system", "vk", identity, timings)


def leads(election: LeaderElection) -> bool:
    """Whether it believes so now."""
    return election.is_leader(time.monotonic())


@asynccontextmanager
async def leading(election: LeaderElection) -> AsyncIterator[None]:
    """Leadership, renewed for as long as the block runs."""
    await election.acquire()
    async with running(election.keep()):
        yield


def lease(api: ModelApiServer) -> dict[str, Any]:
    """The Lease's spec."""
    spec: dict[str, Any] = api.store.objects[KEY]["spec"]
    return spec


async def test_the_first_one_leads_and_renews(api: ModelApiServer, client: KubeClient) -> None:
    """Longer than the Lease lasts without renewal."""
    first = candidate(client, "first", PATIENT)

    async with leading(first):
        before = lease(api)["renewTime"]
        await asyncio.sleep(3.5)

        assert leads(first)
        assert lease(api)["renewTime"] > before
        assert lease(api)["holderIdentity"] == "first"
        assert not first.lost.is_set()


async def test_a_second_one_waits(api: ModelApiServer, client: KubeClient) -> None:
    """As long as the first renews."""
    first, second = (candidate(client, name, PATIENT) for name in ("first", "second"))

    async with leading(first), running(second.acquire()) as waiting:
        await asyncio.sleep(3.5)

        assert not waiting.done()
        assert second.holder == "first"


async def test_a_release_hands_over_at_once(api: ModelApiServer, client: KubeClient) -> None:
    """The successor need not wait for the Lease to run out; transitions are counted."""
    slow = ElectionTimings(lease_duration=60, renew_deadline=40, retry_period=0.05)
    first = LeaderElection(client, "kube-system", "vk", "first", slow)
    second = LeaderElection(client, "kube-system", "vk", "second", slow)
    async with leading(first):
        pass
    assert leads(first)
    assert not first.lost.is_set()

    await first.release()
    await second.acquire()

    assert not leads(first)
    assert leads(second)
    assert lease(api)["leaseTransitions"] == 1


async def test_a_silent_leader_stops_before_its_successor_begins(
    api: ModelApiServer, client: KubeClient
) -> None:
    """The first is cut off and stops by its own clock; the second takes over later."""
    first, second = candidate(client, "first"), candidate(client, "second")
    async with leading(first), running(second.acquire()) as taking:
        api.lie(503, verb="PUT", times=10**6)
        await eventually(first.lost.is_set)
        assert not leads(first)
        assert not leads(second)
        api.lies.clear()
        await eventually(taking.done)

    assert leads(second)
    assert not leads(first)


async def test_never_two_at_once(api: ModelApiServer, client: KubeClient) -> None:
    """Three candidates, an API server that comes and goes: at no moment do two believe."""
    candidates = [candidate(client, name) for name in ("a", "b", "c")]

    async def run(election: LeaderElection) -> None:
        while True:
            await election.acquire()
            await election.keep()

    changes: set[int] = set()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(each)) for each in candidates]
        until = time.monotonic() + 4
        while time.monotonic() < until:
            await asyncio.sleep(0.01)
            if not api.lies and int(until - time.monotonic()) % 2:
                api.lie(500, verb="PUT", times=30)
            now = time.monotonic()
            leaders = [each for each in candidates if each.is_leader(now)]
            assert len(leaders) <= 1
            changes.update(id(each) for each in leaders)
        for task in tasks:
            task.cancel()

    assert changes


async def test_a_renewal_whose_answer_was_lost_keeps_the_lead(
    api: ModelApiServer, client: KubeClient
) -> None:
    """The next try meets a conflict with its own write, looks, and goes on."""
    first = candidate(client, "first", PATIENT)

    async with leading(first):
        lie = api.lie(0, verb="PUT", after_commit=True)
        await eventually(lambda: lie.times == 0)
        renewed = lease(api)["renewTime"]
        await eventually(lambda: lease(api)["renewTime"] > renewed)

        assert leads(first)
        assert not first.lost.is_set()


async def test_a_stolen_lease_ends_the_lead(api: ModelApiServer, client: KubeClient) -> None:
    """Somebody edited the Lease: the conflict is seen at the next renewal."""
    first = candidate(client, "first")

    async with leading(first):
        stolen = api.store.objects[KEY]
        api.store.put("leases", {**stolen, "spec": {**stolen["spec"], "holderIdentity": "thief"}})
        await eventually(first.lost.is_set)

        assert not leads(first)
        assert first.holder == "thief"
    await first.release()
    assert lease(api)["holderIdentity"] == "thief"


async def test_a_release_that_fails_still_ends_the_lead(
    api: ModelApiServer, client: KubeClient
) -> None:
    """Whatever becomes of the call, this process has stopped."""
    first = candidate(client, "first")
    async with leading(first):
        pass
    api.lie(422, verb="PUT")

    await first.release()

    assert not leads(first)


async def test_two_that_create_at_once(api: ModelApiServer, client: KubeClient) -> None:
    """One wins; the other meets AlreadyExists and waits."""
    first, second = candidate(client, "first"), candidate(client, "second")

    async with running(first.acquire()) as one, running(second.acquire()) as other:
        await eventually(lambda: one.done() or other.done())

        assert one.done() != other.done()
