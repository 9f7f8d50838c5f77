"""Output through the SDK: in order, once each, also across failures."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from vk_provider_modal.provider import ModalProvider
from vk_provider_modal.simulator import Simulator
from vk_provider_modal.simulator.model import STATUSES, Behaviour, End

from tests.integration.modal.test_creates import create, gpu_pod
from vk_provider.faults import NotSupportedError, UnavailableError
from vk_provider.pods.types import InstanceRef, LogOptions


async def read(provider: ModalProvider, ref: InstanceRef, **options: Any) -> list[str]:
    """All lines that come."""
    found = provider.read_logs(ref, "main", LogOptions(**options))
    return [line.text.decode() async for line in found]


def say(simulator: Simulator, ref: InstanceRef, text: str, source: str = "stdout") -> None:
    """Let a container print."""
    sandbox = simulator.state.model.sandboxes[ref.id]
    sandbox.said.append((simulator.state.clock.now(), source, text))


async def test_lines_are_put_together_from_both_streams(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """What the service says itself is left out."""
    simulator.state.model.default = Behaviour(log_lines=(), log_every_seconds=0, start_seconds=0)
    ref = await create(provider)
    for text, source in (("be", "stdout"), ("oops\n", "stderr"), ("gun\nrest", "stdout")):
        simulator.state.clock.advance(1)
        say(simulator, ref, text, source)
    say(simulator, ref, "runner started\n", "system")

    assert await read(provider, ref) == ["oops", "begun", "rest"]
    assert await read(provider, ref, tail_lines=0) == []


async def test_logs_outlive_their_container(provider: ModalProvider, simulator: Simulator) -> None:
    """Until Modal forgets them."""
    ref = await create(provider, gpu_pod())
    say(simulator, ref, "the last words\n")
    await provider.delete_instance(ref, 0)

    assert (await read(provider, ref))[-1] == "the last words"


async def test_following_goes_on_after_a_failure(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """No line lost, none twice."""
    ref = await create(provider)
    say(simulator, ref, "one\n")
    lines: list[str] = []
    reader = provider.read_logs(ref, "main", LogOptions(follow=True))

    async def follow() -> None:
        async for line in reader:
            lines.append(line.text.decode())  # noqa: PERF401  # seen while it grows

    following = asyncio.create_task(follow())
    async with asyncio.timeout(20):
        while "one" not in lines:  # noqa: ASYNC110  # a reader rings no bell
            await asyncio.sleep(0.01)
        # More often than the SDK itself tries.
        simulator.state.faults.add("unavailable", operation="SandboxWait", count=5)
        simulator.state.clock.advance(1)
        say(simulator, ref, "two\n")
        ending = End(STATUSES.index("SUCCESS"), simulator.state.clock.now())
        simulator.state.model.finish(simulator.state.model.sandboxes[ref.id], ending)
        await following

    assert lines == ["container started", "listening on 0.0.0.0", "one", "two"]


async def test_following_ends_where_the_sandbox_is_forgotten(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """As it would with its end."""
    ref = await create(provider)
    reader = provider.read_logs(ref, "main", LogOptions(follow=True))
    lines = []
    async with asyncio.timeout(20):
        async for line in reader:
            lines.append(line.text)
            if len(lines) == 2:
                sandbox = simulator.state.model.sandboxes[ref.id]
                simulator.state.model.vanish(sandbox, simulator.state.clock.now())

    assert lines == [b"container started", b"listening on 0.0.0.0"]


async def test_a_bounded_read_fails_where_the_service_does(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """Half a log is not handed out as a whole one."""
    ref = await create(provider)
    await read(provider, ref)
    simulator.state.faults.add("unavailable", operation="AppFetchLogs", count=4)

    with pytest.raises(UnavailableError):
        await read(provider, ref)


async def test_a_very_old_moment_is_cut(provider: ModalProvider) -> None:
    """No sandbox is older, and Modal refuses longer stretches."""
    ref = await create(provider)

    lines = await read(provider, ref, since=datetime.now(UTC) - timedelta(days=400))

    assert lines == ["container started", "listening on 0.0.0.0"]


async def test_there_is_no_previous_container(provider: ModalProvider) -> None:
    """Modal restarts none."""
    with pytest.raises(NotSupportedError, match="previous"):
        provider.read_logs(InstanceRef("sb-1"), "main", LogOptions(previous=True))
