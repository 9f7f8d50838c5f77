"""What a node reckons against the ledger of Modal's simulator, through the real SDK."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from vk_provider_modal import factory
from vk_provider_modal.simulator import Options, running

from tests.integration.budget.ledgers import Reckoning
from tests.integration.modal.conftest import TOKENS
from tests.integration.modal.test_creates import gpu_pod
from vk_provider.placement.reports import hour_of
from vk_provider.pods.types import InstanceRef
from vk_provider.provider import ProviderContext, SupportsPricing
from vk_provider.testing.builders import CLUSTER_ID, NODE_NAME

HOURS = 16


async def test_many_hours_of_sandboxes_agree_with_the_ledger_to_the_cent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Made and unmade at random between the lists: by the price, and by Modal's own bill."""
    monkeypatch.setenv("MODAL_ID", TOKENS[0])
    monkeypatch.setenv("MODAL_SECRET", TOKENS[1])
    options = Options(
        speed=0, behind_seconds=HOURS * 3600, start_seconds=0, log_every_seconds=0, tokens=TOKENS
    )
    rng = random.Random(5)
    async with running(options) as simulator:
        block = {
            "tokenId": {"env": "MODAL_ID"},
            "tokenSecret": {"env": "MODAL_SECRET"},
            "baseUrl": simulator.url,
            "gpuTypes": ["L40S", "H100"],
            "listLagSeconds": 0,
        }
        context = ProviderContext(CLUSTER_ID, NODE_NAME, "modal", "config", "test/1")
        clock, ledger = simulator.state.clock, simulator.state.model.ledger
        async with factory(block, context) as provider:
            assert isinstance(provider, SupportsPricing)
            ours, offers = Reckoning(provider, clock), await provider.list_offers(1)
            sandboxes: list[InstanceRef] = []
            for number in range(40):
                clock.advance(rng.uniform(1, 900))
                if len(sandboxes) < 6 and rng.random() < 0.6:
                    pod = gpu_pod(f"pod-{number}")
                    offer = provider.priced(pod, rng.choice(offers))
                    sandboxes.append(await ours.create(pod, offer))
                clock.advance(rng.uniform(1, 400))
                if sandboxes and rng.random() < 0.4:
                    await ours.delete(sandboxes.pop(rng.randrange(len(sandboxes))))
                await ours.tick()
            assert ledger.usd(clock.now()) > 50
            assert ours.usd == pytest.approx(ledger.usd(clock.now()), abs=0.005)
            await ours.bill(hour_of(datetime.now(UTC)) - timedelta(hours=HOURS + 1))
            assert ours.usd == pytest.approx(ledger.usd(clock.now()), abs=0.005)
