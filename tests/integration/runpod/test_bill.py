"""What a node reckons against the ledger of RunPod's simulator, over real sockets."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from vk_provider_runpod.provider import RunPodProvider
from vk_provider_runpod.simulator import Simulator

from tests.integration.budget.ledgers import Reckoning
from vk_provider.placement.reports import hour_of
from vk_provider.pods.types import InstanceRef, ResolvedPod
from vk_provider.testing.builders import make_container, make_resolved_pod

GPU: dict[str, Any] = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}


def _pod(name: str) -> ResolvedPod:
    return make_resolved_pod(name, containers=[make_container(**GPU)])


async def test_a_month_of_instances_agrees_with_the_ledger_to_the_cent(
    simulator: Simulator, provider: RunPodProvider
) -> None:
    """Made and unmade at random between the lists, thirty days long."""
    rng, clock = random.Random(5), simulator.state.clock
    ours = Reckoning(provider, clock)
    offers = await provider.list_offers(1)
    running: list[InstanceRef] = []
    for number in range(30 * 10):
        clock.advance(rng.uniform(1, 5700))
        if len(running) < 6 and rng.random() < 0.4:
            offer = rng.choice(offers)
            running.append(await ours.create(_pod(f"pod-{number}"), offer))
        clock.advance(rng.uniform(1, 5700))
        if running and rng.random() < 0.3:
            ref = running.pop(rng.randrange(len(running)))
            await ours.delete(ref)
        clock.advance(rng.uniform(1, 5700))
        await ours.tick()
    ledger = simulator.state.model.ledger.usd(clock.now())
    assert ledger > 1000
    assert ours.usd == pytest.approx(ledger, abs=0.005)


async def test_the_bill_knows_what_lists_do_not_show(
    simulator: Simulator, provider: RunPodProvider
) -> None:
    """An instance that died between two lists, and the disk of one that only stopped."""
    clock, model = simulator.state.clock, simulator.state.model
    ours = Reckoning(provider, clock)
    offer = (await provider.list_offers(1))[0]
    begun = datetime.fromtimestamp(clock.now(), UTC)
    gone, stopped = [
        (await provider.create_instance(_pod(name), offer)).id for name in ("gone", "stopped")
    ]
    simulator.state.add_foreign("somebody-elses")
    clock.advance(1000)
    await ours.tick()
    clock.advance(300)
    model.vanish(gone, clock.now())
    model.act(stopped, "stop", clock.now())
    clock.advance(1300)
    await ours.tick()
    assert ours.usd == pytest.approx(2 * 2600 * (offer.usd_per_hour or 0) / 3600)
    for _ in range(3):
        clock.advance(3600)
        await ours.tick()
    await ours.bill(hour_of(begun) - timedelta(hours=1))
    clock.advance(3 * 3600)
    await ours.bill(hour_of(begun) - timedelta(hours=1))
    theirs = [each for each in model.ledger.charges if each.owner.pod_uid]
    assert ours.usd == pytest.approx(model.ledger.usd(clock.now(), theirs), abs=0.005)


async def test_a_bill_that_is_refused_is_a_fault_of_the_seam(
    make_provider: Callable[..., RunPodProvider], simulator: Simulator
) -> None:
    """What was reckoned stays then."""
    await simulator.refuse()
    async with make_provider() as provider:
        with pytest.raises(Exception, match="read bill"):
            await provider.read_spend(datetime.now(UTC))
