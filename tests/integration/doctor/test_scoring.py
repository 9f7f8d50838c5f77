"""The scoring self-test over an API server in memory, with a scheduler of a few lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.integration.loops.memory_api import MemoryApi, MemoryClient
from vk_provider.bursting import names
from vk_provider.bursting.picture import Selection
from vk_provider.doctor.scoring import Wishes, look
from vk_provider.faults import ConfigError

pytestmark = pytest.mark.looptime

GPU = "nvidia.com/gpu"
Decide = Callable[[dict[str, Any]], str | None]


def node(name: str, **more: Any) -> dict[str, Any]:
    """A node with four GPUs."""
    room = {"cpu": "32", "memory": "256Gi", "pods": "110", GPU: "4"}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name, "uid": name} | more,
        "spec": {},
        "status": {"allocatable": room, "capacity": room, "conditions": ready},
    }


def inference(name: str, node: str = "") -> dict[str, Any]:
    """A pod that bursts."""
    container = {"name": "c", "image": "i", "resources": {"limits": {GPU: "1", "cpu": "1"}}}
    return {
        "metadata": {"name": name, "namespace": "web", "labels": {names.BURST_LABEL: "true"}},
        "spec": {"nodeName": node or None, "containers": [container]},
        "status": {"phase": "Running"},
    }


@asynccontextmanager
async def cluster(decide: Decide, outside: bool = True) -> AsyncIterator[MemoryApi]:
    """Home and perhaps a virtual node; each probe goes where `decide` says."""
    api = MemoryApi()
    api.store.put("nodes", node("home"))
    api.store.put("nodes", node("cordoned") | {"spec": {"unschedulable": True}})
    if outside:
        api.store.put("nodes", node("burst", labels={"type": "virtual-kubelet"}))
    task = asyncio.ensure_future(_schedule(api, decide))
    try:
        yield api
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _schedule(api: MemoryApi, decide: Decide) -> None:
    while True:
        await asyncio.sleep(0.05)
        for (kind, _, _), pod in list(api.store.objects.items()):
            if kind == "pods" and not pod["spec"].get("nodeName") and not pod.get("status"):
                place = decide(pod)
                if place == "":
                    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
                    waits |= {"message": "0/3", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                    api.store.put("pods", {**pod, "status": {"conditions": [waits]}})
                elif place:
                    spec = {**pod["spec"], "nodeName": place}
                    api.store.put("pods", {**pod, "spec": spec, "status": {"phase": "Pending"}})


def left(api: MemoryApi) -> list[str]:
    """Pods that were left behind."""
    return [name for kind, _, name in api.store.objects if kind == "pods" and "probe" in name]


async def test_as_many_probes_as_home_has_room_for_are_placed_and_deleted() -> None:
    """Like a pod that bursts: it asks for the same and has none of its labels."""
    seen: list[dict[str, Any]] = []

    def decide(pod: dict[str, Any]) -> str:
        seen.append(pod)
        return "home"

    async with cluster(decide) as api:
        api.store.put("pods", inference("a", "home"))
        found = await look(MemoryClient(api), Selection(), Wishes())

        assert found.went == {"home": 3}
        assert left(api) == []
    assert found.sample["metadata"]["name"] == "a"
    assert seen[0]["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "1"
    assert [place.name for place in found.places] == ["burst", "home"]
    assert found.verdict is not None


async def test_a_named_pod_is_copied_and_one_as_the_webhook_makes_it_where_there_is_none() -> None:
    """In this order."""
    async with cluster(lambda _: "burst") as api:
        generic = await look(MemoryClient(api), Selection(), Wishes(probes=1))
        api.store.put("pods", inference("mine", "burst"))
        named = await look(MemoryClient(api), Selection(), Wishes(1, ("web", "mine")))

    assert generic.went == {"burst": 1}
    assert generic.sample["metadata"]["name"] == "a pod as the webhook makes it"
    assert named.sample["metadata"]["name"] == "mine"


async def test_a_probe_without_a_place_says_why() -> None:
    """In the scheduler's words, or that it said none."""
    async with cluster(lambda _: "") as api:
        refused = await look(MemoryClient(api), Selection(), Wishes(probes=1))
        assert left(api) == []
    async with cluster(lambda _: None) as api:
        silent = await look(MemoryClient(api), Selection(), Wishes(probes=1))
        assert left(api) == []

    assert refused.stuck == ["0/3"]
    assert silent.stuck == ["the scheduler said nothing within 15 s"]


async def test_without_a_virtual_node_there_is_nothing_to_compare() -> None:
    """And no probe."""
    async with cluster(lambda _: "home", outside=False) as api:
        with pytest.raises(ConfigError, match="has no virtual node"):
            await look(MemoryClient(api), Selection(), Wishes())
        assert api.count("POST") == 0
