"""The price of a sandbox is that of all its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from vk_provider_modal.config import ModalConfig
from vk_provider_modal.pricing import Rates, priced, rates_of

from vk_provider.pods.types import Offer, ResolvedPod
from vk_provider.testing.builders import make_container, make_resolved_pod

RATES = Rates(core=0.05, gib=0.01)
CPU = Offer("cpu")
GPU = Offer("H100 x1", gpu_type="H100", gpu_count=1, usd_per_hour=4.0)


def pod(**amounts: Any) -> ResolvedPod:
    """A pod whose container has these resources."""
    return make_resolved_pod(containers=[make_container(resources=amounts)])


@pytest.mark.parametrize(
    ("resources", "offer", "price"),
    [
        ({"requests": {"cpu": "4", "memory": "8Gi"}}, CPU, 0.18),
        ({"limits": {"cpu": "4", "memory": "8Gi"}}, CPU, 0.18),
        ({}, CPU, 0.0075),
        ({"limits": {"nvidia.com/gpu": "1", "cpu": "4", "memory": "8Gi"}}, GPU, 4.18),
    ],
)
def test_cores_and_memory_are_paid_for_beside_the_gpus(
    resources: dict[str, Any], offer: Offer, price: float
) -> None:
    """Two CPUs are a core, and there is a least of both."""
    assert priced(pod(**resources), offer, RATES).usd_per_hour == price


def test_half_a_price_is_none() -> None:
    """It would look like a whole one."""
    unpriced = Offer("H100 x1", gpu_type="H100", gpu_count=1)
    with_gpu = pod(limits={"nvidia.com/gpu": "1"})

    assert priced(with_gpu, unpriced, RATES) == unpriced
    assert priced(pod(), CPU, Rates(core=0.05)) == CPU
    assert priced(pod(), CPU, Rates(gib=0.05)) == CPU


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"CPU": 0.0000131, "Memory": 0.00000222, "H100": 0.001}, Rates(0.04716, 0.007992)),
        ({"cpu_core_hours": 0.05, "memory_gib_hours": 0.0005}, Rates(0.05, 0.0005)),
        ({"cpu": 0.05, "sandbox_cpu": 0.15, "memory": 0.0}, Rates(0.15, None)),
        ({"gpu_memory": 1.0}, Rates(None, None)),
    ],
)
def test_rates_are_found_by_their_names(
    config: ModalConfig, table: dict[str, float], expected: Rates
) -> None:
    """Whatever stands beside them, and whatever their unit."""
    found = rates_of(table, config)

    assert found.core == (None if expected.core is None else pytest.approx(expected.core))
    assert found.gib == (None if expected.gib is None else pytest.approx(expected.gib))


def test_the_configuration_wins(configured: Callable[..., ModalConfig]) -> None:
    """Over the account's own table."""
    config = configured(usd_per_hour={"CPU": 1.0, "MEMORY": 2.0})

    assert rates_of({"cpu": 0.00001, "memory": 0.000001}, config) == Rates(1.0, 2.0)
