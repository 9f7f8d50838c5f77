"""Unused registry logins are deleted, against the simulator."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from vk_provider_runpod.client import RunPodClient
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.registries import Registries, registry_name
from vk_provider_runpod.simulator import Simulator

from tests.integration.runpod.conftest import API_KEY
from vk_provider.pods.types import RegistryCredential
from vk_provider.secrets import SecretSource

LOGIN = RegistryCredential("registry.example", "me", "correct-horse")
STALE = f"vk-provider-{'0' * 24}"


async def key() -> str:
    """The account's key."""
    return API_KEY


@pytest.fixture
async def client(simulator: Simulator) -> AsyncIterator[RunPodClient]:
    """A client that was entered."""
    config = RunPodConfig(SecretSource(env="UNUSED"), base_url=simulator.url)
    async with RunPodClient(config, "test/1", key) as found:
        yield found


class Clock:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.seconds


async def test_what_no_instance_uses_is_deleted_when_it_was_seen_so_twice(
    client: RunPodClient, simulator: Simulator
) -> None:
    """Ours alone; a login that was just asked for is spared; little is asked for in between."""
    state, clock = simulator.state, Clock()
    state.model.registries |= {"r-1": "somebody-elses", "r-2": STALE}
    registries = Registries(client, clock)
    used = await registries.id_of(LOGIN)
    state.requests.clear()

    async def left_at(minutes: float, *in_use: str) -> set[str]:
        clock.seconds = 60 * minutes
        await registries.collect([{"registry": each} for each in in_use])
        return set(state.model.registries.values()) - {"somebody-elses"}

    mine = registry_name(LOGIN)
    assert await left_at(5) == {STALE, mine}
    assert not state.requests
    assert await left_at(11) == {STALE, mine}
    assert await left_at(72, used) == {mine}
    assert await left_at(133) == {mine}
    assert await left_at(134) == {mine}
    assert await left_at(194) == set()
    assert "r-1" in state.model.registries
    assert await registries.id_of(LOGIN) != used


async def test_a_service_that_is_down_or_says_no_is_asked_again_later(
    client: RunPodClient, simulator: Simulator
) -> None:
    """Tidying up fails no list."""
    state, clock = simulator.state, Clock()
    state.model.registries |= {"r-2": STALE}
    registries = Registries(client, clock)

    async def left_at(minutes: float, fault: str = "") -> int:
        if fault:
            state.faults.add("error", count=1, operation=fault)
        clock.seconds = 60 * minutes
        await registries.collect([])
        return len(state.model.registries)

    assert await left_at(11, "listRegistries") == 1
    assert await left_at(72) == 1
    assert await left_at(133, "deleteRegistry") == 1
    assert await left_at(194) == 0
