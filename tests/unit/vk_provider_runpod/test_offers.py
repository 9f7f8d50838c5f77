"""The catalogue as offers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vk_provider_runpod.config import COMMUNITY, RunPodConfig
from vk_provider_runpod.offers import cpu_offers, gpu_offers, known_offers

from vk_provider.pods.types import Offer, Stock


def gpu(name: str, **fields: Any) -> dict[str, Any]:
    """One GPU type as the catalogue shows it."""
    return {
        "id": name,
        "manufacturer": "NVIDIA",
        "memory": 48,
        "secure": True,
        "community": True,
        "price": {"secure": 0.5, "community": 0.25},
        "maxCount": {"secure": 8, "community": 2},
        "availability": "HIGH",
        "dataCenters": [{"id": "EU-RO-1", "name": "x", "availability": "LOW"}],
    } | fields


def cpu(name: str, **fields: Any) -> dict[str, Any]:
    """One CPU flavour as the catalogue shows it."""
    return {
        "id": name,
        "vcpu": {"min": 2, "max": 32},
        "price": {"securePerVcpu": 0.03},
        "availability": "MEDIUM",
    } | fields


def test_offers_come_in_the_configured_order(config: RunPodConfig) -> None:
    """Whatever the catalogue's; what it lacks is no offer."""
    wanted = replace(config, gpu_types=("B", "missing", "A"))

    found = gpu_offers({"gpus": [gpu("A"), gpu("B")]}, 1, wanted)

    assert [offer.gpu_type for offer in found] == ["B", "A"]


def test_without_a_list_every_nvidia_type_is_offered(config: RunPodConfig) -> None:
    """AMD is for who names it."""
    catalogue = {"gpus": [gpu("A"), gpu("MI", manufacturer="AMD"), gpu("B")]}

    found = gpu_offers(catalogue, 1, replace(config, gpu_types=()))

    assert [offer.gpu_type for offer in found] == ["A", "B"]


def test_the_price_is_the_clouds_for_all_gpus_together(config: RunPodConfig) -> None:
    """With memory of one, as the catalogue has it."""
    catalogue = {"gpus": [gpu("A")]}
    both = replace(config, gpu_types=("A",))

    (secure,) = gpu_offers(catalogue, 2, both)
    (community,) = gpu_offers(catalogue, 2, replace(both, cloud_type=COMMUNITY))

    assert secure == Offer("A x2 SECURE", "A", 2, 48, None, 1.0, Stock.HIGH)
    assert (community.id, community.usd_per_hour) == ("A x2 COMMUNITY", 0.5)


@pytest.mark.parametrize(
    "entry",
    [
        gpu("A", maxCount={"secure": 1}),
        gpu("A", secure=False),
        gpu("A", maxCount=None),
    ],
)
def test_what_the_cloud_does_not_have_is_no_offer(
    config: RunPodConfig, entry: dict[str, Any]
) -> None:
    """Neither too few GPUs in a machine nor the other cloud's."""
    assert gpu_offers({"gpus": [entry]}, 2, replace(config, gpu_types=("A",))) == ()


@pytest.mark.parametrize("price", [None, 0, -1, True, "cheap"])
def test_a_price_that_is_none_is_absent(config: RunPodConfig, price: Any) -> None:
    """A free GPU would win every ranking."""
    catalogue = {"gpus": [gpu("A", price={"secure": price})]}

    (offer,) = gpu_offers(catalogue, 1, replace(config, gpu_types=("A",)))

    assert offer.usd_per_hour is None


def test_each_configured_data_center_is_an_offer_with_its_stock(config: RunPodConfig) -> None:
    """One that the catalogue doesn't list has none."""
    there = replace(config, gpu_types=("A",), data_centers=("EU-RO-1", "US-TX-3"))

    found = gpu_offers({"gpus": [gpu("A")]}, 1, there)

    assert [(offer.id, offer.data_center, offer.stock) for offer in found] == [
        ("A x1 SECURE EU-RO-1", "EU-RO-1", Stock.LOW),
        ("A x1 SECURE US-TX-3", "US-TX-3", Stock.NONE),
    ]


@pytest.mark.parametrize(
    ("level", "stock"),
    [
        ("NONE", Stock.NONE),
        ("MEDIUM", Stock.MEDIUM),
        ("PLENTY", Stock.UNKNOWN),
        (None, Stock.UNKNOWN),
    ],
)
def test_stock_is_the_catalogues_word(
    config: RunPodConfig, level: str | None, stock: Stock
) -> None:
    """An unknown word is unknown stock, which is still tried."""
    (offer,) = gpu_offers({"gpus": [gpu("NVIDIA L40S", availability=level)]}, 1, config)

    assert offer.stock is stock


def test_what_is_too_dear_is_no_offer(config: RunPodConfig) -> None:
    """For GPUs together and CPUs alike; no price is no reason."""
    cheap = replace(config, gpu_types=("A", "B", "C"), max_usd_per_hour=0.06)
    entries = [gpu("A"), gpu("B", price={"secure": 0.05}), gpu("C", price={})]

    assert [offer.gpu_type for offer in gpu_offers({"gpus": entries}, 1, cheap)] == ["B", "C"]
    assert len(cpu_offers({"cpus": [cpu("cpu5c")]}, cheap)) == 1
    assert cpu_offers({"cpus": [cpu("cpu5c")]}, replace(cheap, max_usd_per_hour=0.05)) == ()


def test_cpu_offers_are_flavours_at_the_price_of_the_smallest(config: RunPodConfig) -> None:
    """Both spellings of an id are one flavour."""
    catalogue = {"cpus": [cpu("cpu3c-2-4"), cpu("cpu5c", vcpu={}), cpu("cpu9z")]}

    found = cpu_offers(catalogue, config)

    assert [(offer.id, offer.usd_per_hour, offer.stock) for offer in found] == [
        ("cpu5c SECURE", 0.06, Stock.MEDIUM),
        ("cpu3c-2-4 SECURE", 0.06, Stock.MEDIUM),
    ]


def test_the_community_cloud_has_no_cpus(config: RunPodConfig) -> None:
    """As its price list shows."""
    community = replace(config, cloud_type=COMMUNITY)

    assert cpu_offers({"cpus": [cpu("cpu5c")]}, community) == ()
    assert known_offers(0, community) == ()


def test_known_offers_are_what_the_configuration_names(config: RunPodConfig) -> None:
    """With the ids that the catalogue's offers will have."""
    there = replace(config, data_centers=("EU-RO-1",))
    catalogue = {"gpus": [gpu("NVIDIA L40S")]}

    known = known_offers(2, there)

    assert [offer.id for offer in known] == [o.id for o in gpu_offers(catalogue, 2, there)]
    assert [offer.usd_per_hour for offer in known] == [None]
    assert known[0].stock is Stock.UNKNOWN
    assert known_offers(0, config)[0] == Offer("cpu5c SECURE")
    assert known_offers(1, replace(config, gpu_types=())) == (Offer("any x1 SECURE", gpu_count=1),)


def test_a_garbled_catalogue_is_empty(config: RunPodConfig) -> None:
    """Its entries are checked one by one."""
    assert gpu_offers({"gpus": ["x", {}]}, 1, config) == ()
    assert cpu_offers({}, config) == ()
