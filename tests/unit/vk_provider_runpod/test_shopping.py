"""Prices of CPU instances by the vCPU."""

from __future__ import annotations

from vk_provider_runpod.shopping import rates


def test_rates_are_those_that_the_catalogue_tells() -> None:
    """By flavour, whatever size its entry names; what is no price is none."""
    prices = {"cpu3c-2-4": 0.03, "cpu5c": 0.04, "cpu5g": 0, "cpu5m": None, "cpu3g": True}
    cpus = [{"id": name, "price": {"securePerVcpu": price}} for name, price in prices.items()]

    assert rates({"cpus": [*cpus, {"id": "cpu3m"}]}) == {"cpu3c": 0.03, "cpu5c": 0.04}
