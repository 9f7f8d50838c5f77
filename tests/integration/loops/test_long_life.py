"""A node that has seen many pods weighs no more than one that has seen few.

Beside ``test_forgetting``, which looks for the names of pods: here it is the bytes of everything,
metrics included, while users choose names, owners and resources as they like.
"""

from __future__ import annotations

import gc
import itertools
import sys
from collections import Counter
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from tests.integration.loops.bench import Bench
from tests.integration.loops.memory_api import MemoryApi
from vk_provider.kube.client import KubeClient
from vk_provider.kube.events import EventRecorder
from vk_provider.placement.meters import Meters
from vk_provider.testing.builders import make_container
from vk_provider.testing.fake import FakeBackend

WAVE = 50
FORGIVEN_BYTES = 40 * 1024
"""Tables that grew once more, figures with another digit: 30 KiB after 10,000 pods as well."""
OUTSIDE = (MemoryApi, KubeClient, FakeBackend, ModuleType, type, BuiltinFunctionType)
BOUNDED = (EventRecorder, Meters)
"""So many entries or days at most, as their own tests say: thousands of pods fill them."""
OFFERS = [
    {"name": "large", "gpuType": "L40S", "usdPerHour": 1.0},
    {"name": "small", "usdPerHour": 0.1},
]
WISH = "fake.vk-provider.dev/"


class Users:
    """They run pods of every fate, and each Job is a new one."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._numbers = itertools.count()

    async def weigh(self, waves: int) -> Counter[str]:
        """What the node holds after so many waves of pods, and a while in which little happens."""
        for _ in range(waves):
            await self._wave()
        await self._bench.settle(1200)
        await self._wave()
        bench = self._bench
        gc.collect()
        return held(bench.node, bench.metrics, bench.heartbeat, bench.lease)

    async def _wave(self) -> None:
        bench = self._bench
        names = [self._bind(next(self._numbers)) for _ in range(WAVE)]
        await bench.settle(40)
        for name in names:
            if bench.phase(name) not in ("Failed", "Gone"):
                bench.delete(name, 0)
        await bench.settle(20)
        for name in names:
            if bench.phase(name) != "Gone":
                bench.force_delete(name)
        await bench.until(lambda: not bench.node.workers.records)

    def _bind(self, number: int) -> str:
        name, fate = f"pod-{number}", number % 5
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{number}", "uid": name}
        owners = [] if number % 2 else [{**owner, "controller": True}]
        wishes = {
            1: {f"{WISH}run-seconds": "5", f"{WISH}exit-code": "1"},
            2: {f"{WISH}rejected": f"reason {number}"},
        }
        resources = {3: {f"example.com/{name}": "1"}, 4: {"nvidia.com/gpu": str(1 + number % 60)}}
        self._bench.bind(
            name,
            metadata={"ownerReferences": owners, "annotations": wishes.get(fate, {})},
            containers=[make_container(resources={"limits": resources.get(fate, {})})],
        )
        return name


def held(*roots: object) -> Counter[str]:
    """How many bytes are within reach, by type."""
    seen, todo, sizes = set[int](), [*roots], Counter[str]()
    while todo:
        one = todo.pop()
        if id(one) not in seen and not isinstance(one, OUTSIDE + BOUNDED):
            seen.add(id(one))
            sizes[type(one).__qualname__] += sys.getsizeof(one)
            todo += _referents(one)
    return sizes


def _referents(one: object) -> list[Any]:
    if isinstance(one, FunctionType):  # its globals are the whole program
        return list(one.__closure__ or ())
    is_machinery = type(one).__module__.startswith(("asyncio", "_asyncio", "logging"))
    return [] if is_machinery else gc.get_referents(one)


async def test_many_pods_weigh_no_more_than_few() -> None:
    """Whatever they wanted, whoever owned them and however they went."""
    budget = {"budget": {"usdPerMonth": 1_000_000}}
    async with Bench({"fake": {"offers": OFFERS}}, placement=budget) as bench:
        users = Users(bench)
        few = await users.weigh(1)
        many = await users.weigh(6)
        grown = (many - few).most_common(8)
        assert many.total() - few.total() < FORGIVEN_BYTES, grown
