"""A container's log over a stream that is quiet, endless, and breaks."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from vk_provider_runpod.provider import RunPodProvider
from vk_provider_runpod.simulator import Simulator
from vk_provider_runpod.simulator.model import SimulatedPod

from tests.integration.runpod.test_provider import create
from vk_provider.faults import InstanceNotFoundError, NotSupportedError, UnavailableError
from vk_provider.pods.types import InstanceRef, LogLine, LogOptions


async def read(provider: RunPodProvider, ref: InstanceRef, **options: Any) -> list[bytes]:
    """All lines of one read."""
    lines = provider.read_logs(ref, "main", LogOptions(**options))
    return [line.text async for line in lines]


@pytest.fixture
async def ref(provider: RunPodProvider, simulator: Simulator) -> InstanceRef:
    """An instance that runs."""
    found = await create(provider)
    simulator.state.clock.advance(60)
    return found


@pytest.fixture
def pod(simulator: Simulator, ref: InstanceRef) -> SimulatedPod:
    """The simulated pod behind it."""
    return simulator.state.model.pods[ref.id]


def say(simulator: Simulator, pod: SimulatedPod, *lines: str) -> None:
    """Let the container write lines, all at one moment."""
    pod.said += [(simulator.state.clock.now(), "container", line) for line in lines]


async def test_a_quiet_pod_does_not_hold_a_bounded_read(
    provider: RunPodProvider, ref: InstanceRef
) -> None:
    """The stream itself never ends."""
    async with asyncio.timeout(5):
        assert await read(provider, ref) == [b"container started", b"listening on 0.0.0.0"]


async def test_a_talkative_pod_does_not_hold_one_either(
    provider: RunPodProvider, ref: InstanceRef, simulator: Simulator
) -> None:
    """What comes after the call is for those who follow."""
    pod = simulator.state.model.pods[ref.id]
    pod.behaviour = replace(pod.behaviour, log_every_seconds=0.1)
    simulator.state.clock.speed = 20

    async with asyncio.timeout(15):
        lines = await read(provider, ref, tail_lines=20)

    assert len(lines) >= 20


async def test_system_lines_are_the_hosts_and_not_the_containers(
    provider: RunPodProvider, ref: InstanceRef
) -> None:
    """`kubectl logs` shows the container."""
    assert not [line for line in await read(provider, ref) if b"create container" in line]


async def test_tail_and_since_are_the_services_to_apply(
    provider: RunPodProvider, ref: InstanceRef, simulator: Simulator, pod: SimulatedPod
) -> None:
    """So that megabytes stay there."""
    say(simulator, pod, "a", "b", "c")
    now = datetime.fromtimestamp(simulator.state.clock.now(), UTC)

    assert await read(provider, ref, tail_lines=2) == [b"b", b"c"]
    assert await read(provider, ref, since=now) == [b"a", b"b", b"c"]
    assert await read(provider, ref, tail_lines=0) == []


async def test_followed_lines_survive_breaks_without_loss_or_doubling(
    provider: RunPodProvider, ref: InstanceRef, simulator: Simulator, pod: SimulatedPod
) -> None:
    """Also equal lines of one moment, and characters of several bytes."""
    simulator.state.drop_logs_after = 7
    said = [f"line {n // 3} grün €" for n in range(30)]
    begun = simulator.state.clock.now() - 30
    pod.said = [(begun + 2 * (n // 3), "container", line) for n, line in enumerate(said)]
    got: list[bytes] = []

    async with asyncio.timeout(30):
        async with aclosing(_generator(provider, ref)) as lines:
            async for line in lines:
                got.append(line.text)  # looked at before the stream has ended
                if len(got) == len(said) + 2:
                    break

    assert got[2:] == [line.encode() for line in said]


def _generator(provider: RunPodProvider, ref: InstanceRef) -> Any:
    return provider.read_logs(ref, "main", LogOptions(follow=True))


async def test_following_ends_with_the_instance(
    provider: RunPodProvider, ref: InstanceRef, simulator: Simulator, pod: SimulatedPod
) -> None:
    """After the last line."""
    following = asyncio.create_task(_collect(provider, ref))
    await asyncio.sleep(0.2)

    say(simulator, pod, "the last words")
    await asyncio.sleep(0.2)
    await provider.delete_instance(ref, 0)

    async with asyncio.timeout(20):
        assert (await following)[-1].text == b"the last words"


async def _collect(provider: RunPodProvider, ref: InstanceRef) -> list[LogLine]:
    return [line async for line in _generator(provider, ref)]


async def test_an_instance_that_is_not_there_has_no_log(provider: RunPodProvider) -> None:
    """Which becomes a 404."""
    with pytest.raises(InstanceNotFoundError):
        await read(provider, InstanceRef("never-was"))


async def test_a_previous_container_has_no_log(provider: RunPodProvider, ref: InstanceRef) -> None:
    """RunPod keeps none apart."""
    with pytest.raises(NotSupportedError):
        await read(provider, ref, previous=True)


async def test_a_log_that_cannot_be_read_is_a_fault(
    provider: RunPodProvider, ref: InstanceRef, simulator: Simulator
) -> None:
    """HTML or a 5xx instead of a stream."""
    for kind in ("garbage", "error", "reset"):
        # More than once, since a connection that breaks before an answer is tried anew.
        simulator.state.faults.add(kind, operation="getPodLogs")
        with pytest.raises(UnavailableError):
            await read(provider, ref)
        simulator.state.faults.remove()


async def test_following_outlives_a_few_failures(
    provider: RunPodProvider, ref: InstanceRef, simulator: Simulator
) -> None:
    """A person who follows for hours expects no less."""
    simulator.state.faults.add("error", count=2, operation="getPodLogs")

    async with asyncio.timeout(20), aclosing(_generator(provider, ref)) as lines:
        first = await anext(lines)

    assert first.text == b"container started"
