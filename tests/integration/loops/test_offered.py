"""The node never promises more than its backends say they could carry."""

from __future__ import annotations

from tests.integration.loops.bench import Bench
from vk_provider.faults import UnavailableError


async def test_a_backends_own_limit_lowers_allocatable() -> None:
    """And capacity stays what the operator configured (C054)."""
    async with Bench({"fake": {"capacity": {"pods": "7"}}}) as bench:
        await bench.until(lambda: bench.allocatable() == 7)
        node = bench.api.get("nodes", "burst", "") or {}

    assert node["status"]["capacity"]["pods"] == "100"


async def test_limits_of_several_backends_add_up() -> None:
    """Each carries its share."""
    backends = {"a": {"capacity": {"pods": "7"}}, "b": {"capacity": {"pods": "5"}}}
    async with Bench(backends) as bench:
        await bench.until(lambda: bench.allocatable() == 12)


async def test_a_backend_without_a_limit_leaves_the_configuration_alone() -> None:
    """What one does not limit, all together do not."""
    async with Bench({"a": {"capacity": {"pods": "7"}}, "b": {}}) as bench:
        await bench.settle(120)
        assert bench.allocatable() == 100


async def test_a_backend_that_can_not_say_keeps_its_last_answer() -> None:
    """An outage of an API is no loss of machines."""
    async with Bench({"fake": {"capacity": {"pods": "7"}}}) as bench:
        await bench.until(lambda: bench.allocatable() == 7)
        bench.cloud.script.fail_always("capacity", UnavailableError("away"))
        await bench.settle(300)
        assert bench.allocatable() == 7
