"""GPU types as offers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from vk_provider_modal.config import ModalConfig
from vk_provider_modal.offers import known_offers, numbers, offers, price


def test_a_cpu_pod_has_one_offer(config: ModalConfig) -> None:
    """Without a price, which depends on its size."""
    (offer,) = offers(0, config, {"gpu_h100": 0.001})

    assert (offer.id, offer.usd_per_hour) == ("cpu", None)


def test_types_come_in_the_configured_order(configured: Callable[..., ModalConfig]) -> None:
    """One for each region."""
    config = configured(gpu_types=("H100", "A10"), regions=("us", "eu"))

    found = known_offers(2, config)

    assert [each.id for each in found] == ["H100 x2 us", "H100 x2 eu", "A10 x2 us", "A10 x2 eu"]
    assert found[0].gpu_memory_gib == 80


def test_what_no_host_has_is_not_offered(configured: Callable[..., ModalConfig]) -> None:
    """Four A10 are the most."""
    config = configured(gpu_types=("H100", "A10"))

    assert [each.gpu_type for each in known_offers(8, config)] == ["H100"]
    assert known_offers(9, config) == ()


def test_prices_are_for_the_whole_instance(configured: Callable[..., ModalConfig]) -> None:
    """The configured one wins, and the cap is kept."""
    config = configured(gpu_types=("H100", "L4"), usd_per_hour={"L4": 0.5}, max_usd_per_hour=5.0)
    rates = {"gpu_H100": 0.001, "gpu_L4": 0.000222}

    assert [each.usd_per_hour for each in offers(1, config, rates)] == [3.6, 0.5]
    assert [each.gpu_type for each in offers(2, config, rates)] == ["L4"]
    assert known_offers(1, config)[0].usd_per_hour is None


@pytest.mark.parametrize(
    ("name", "rates", "expected"),
    [
        ("H100!", {"H100": 0.001097}, 3.9492),
        ("A100-80GB", {"gpu_a100_80gb_per_second": 0.000694}, 2.4984),
        ("H100", {"NVIDIA H100 (per hour)": 3.95}, 3.95),
        ("H100", {"gpu_h100_hour": 0.01}, 0.01),
        ("H100", {"gpu_h200": 0.001}, None),
        ("H100", {"gpu_h100": 0.0}, None),
    ],
)
def test_a_rate_is_found_by_the_types_name(
    name: str, rates: dict[str, float], expected: float | None
) -> None:
    """Whatever stands beside it, and whatever its unit."""
    assert price(name, rates) == expected


def test_rates_that_are_no_numbers_are_left_out() -> None:
    """They price nothing."""
    assert numbers({"a": "0.5", "b": "soon"}) == {"a": 0.5}
