"""The configuration block of the fake provider."""

from __future__ import annotations

import pytest

from vk_provider.faults import ConfigError
from vk_provider.pods.types import Stock
from vk_provider.provider import ProviderContext
from vk_provider.testing.fake import factory
from vk_provider.testing.fake_config import FakeConfig, FakeOffer, parse_config


def test_an_empty_block_is_a_service_that_starts_at_once() -> None:
    """Everything has a default."""
    assert parse_config({}, "here") == FakeConfig()


def test_every_key_is_read() -> None:
    """By its name in YAML."""
    offer = {
        "name": "l40s",
        "gpuType": "NVIDIA L40S",
        "gpuMemoryGiB": 48,
        "dataCenter": "EU-1",
        "usdPerHour": 0.8,
        "capacity": 2,
    }
    config = {"service": "cloud", "offers": [offer], "capacity": {"cpu": 8}, "runSeconds": 3}
    more = {"startAfterSeconds": 1, "exitCode": 2, "createSeconds": 0.5, "listLagSeconds": 5}

    parsed = parse_config({**config, **more, "endedIsFree": False, "directAddresses": True}, "here")

    assert parsed == FakeConfig(
        service="cloud",
        offers=(FakeOffer("l40s", "NVIDIA L40S", 48, "EU-1", 0.8, 2),),
        capacity={"cpu": "8"},
        start_after_seconds=1,
        run_seconds=3,
        exit_code=2,
        create_seconds=0.5,
        list_lag_seconds=5,
        ended_is_free=False,
        direct_addresses=True,
    )


def test_all_mistakes_are_told_at_once() -> None:
    """With their paths, and the key that was probably meant."""
    block = {"runSecond": 1, "listLagSeconds": -1, "offers": [{"name": "a"}, {"name": "a"}, {}]}

    with pytest.raises(ConfigError) as raised:
        parse_config(block, "spec.backends[0].config")

    told = "\n".join(str(each) for each in raised.value.problems)
    assert 'spec.backends[0].config.runSecond: unknown key; did you mean "runSeconds"?' in told
    assert "spec.backends[0].config.listLagSeconds" in told
    assert 'spec.backends[0].config.offers[1].name: found "a" twice' in told
    assert "spec.backends[0].config.offers[2].name: missing" in told


def test_offers_fit_the_number_of_gpus() -> None:
    """A machine with GPUs is for pods that want some; its price is per GPU."""
    config = FakeConfig(offers=(FakeOffer("cpu"), FakeOffer("l40s", "L40S", usd_per_hour=1.0)))

    (cpu,), (gpu,) = (config.offers_for(count, lambda name: 0) for count in (0, 2))

    assert (cpu.id, cpu.usd_per_hour, cpu.stock) == ("cpu/0", None, Stock.HIGH)
    assert (gpu.id, gpu.gpu_count, gpu.usd_per_hour) == ("l40s/2", 2, 2.0)


def test_stock_follows_what_is_rented() -> None:
    """Up to the offer's capacity."""
    offer = FakeOffer("a", capacity=1)

    assert [offer.offer(0, used).stock for used in (0, 1)] == [Stock.LOW, Stock.NONE]


def test_without_offers_there_is_one_that_fits_everything() -> None:
    """As for a backend that has no catalogue."""
    (offer,) = FakeConfig().offers_for(3, lambda name: 0)

    assert (offer.id, offer.gpu_count) == ("default", 3)


def test_leftovers_are_there_from_the_start_under_our_stamp() -> None:
    """As a node that died would leave them."""
    context = ProviderContext("cluster-1", "node-1", "fake", "config", "agent")

    provider = factory({"leftovers": ["shop/web-1"]}, context)

    (left,) = provider.backend.instances.values()
    assert left.stamp is not None
    assert (left.stamp.cluster_id, left.stamp.node_name) == ("cluster-1", "node-1")
    assert (left.stamp.namespace, left.stamp.pod_name) == ("shop", "web-1")
