"""The shared picture: one watch a kind, Kueue when it is there, and how far it can be believed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.integration.loops.memory_api import MemoryApi, MemoryClient
from vk_provider.bursting.picture import Selection
from vk_provider.bursting.signals import Kueue
from vk_provider.controllers.cluster_view import ClusterView
from vk_provider.controllers.kueue_view import KueueView

pytestmark = pytest.mark.looptime

GPU = "nvidia.com/gpu"
GROUP = {"metadata": {"name": "kueue.x-k8s.io"}, "preferredVersion": {"version": "v1beta2"}}


@asynccontextmanager
async def seen(api: MemoryApi, **options: Any) -> AsyncIterator[ClusterView]:
    """A view that runs."""
    view = ClusterView(MemoryClient(api), Selection(), **options)
    task = asyncio.ensure_future(view.run())
    try:
        yield view
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def home(name: str, gpus: int = 8) -> dict[str, Any]:
    """A home node."""
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": {GPU: str(gpus)}, "conditions": ready}
    return {"metadata": {"name": name, "uid": name}, "spec": {}, "status": status}


def workload(name: str, **status: Any) -> dict[str, Any]:
    """A Workload of two GPUs in LocalQueue `q`."""
    template = {"spec": {"containers": [{"resources": {"limits": {GPU: "2"}}}]}}
    return {
        "metadata": {"name": name, "namespace": "ml", "uid": name},
        "spec": {"queueName": "q", "podSets": [{"count": 1, "template": template}]},
        "status": status,
    }


def local_queue(cluster_queue: str | None) -> dict[str, Any]:
    """The LocalQueue."""
    spec = {} if cluster_queue is None else {"clusterQueue": cluster_queue}
    return {"metadata": {"name": "q", "namespace": "ml", "uid": "q"}, "spec": spec}


async def until(condition: Any, seconds: float = 200.0) -> None:
    """Let time pass until it holds."""
    for _ in range(int(seconds * 10)):
        if condition():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it never held")


async def test_a_picture_follows_the_cluster() -> None:
    """Nodes, pods; whoever subscribed is told; what we do not look at is no news."""
    api = MemoryApi()
    api.store.put("nodes", home("a"))
    async with seen(api) as view:
        changed = view.subscribe()
        await view.wait()
        assert [node.name for node in view.picture().home] == ["a"]
        api.store.put("pods", {"metadata": {"name": "p", "namespace": "d", "uid": "p"}, "spec": {}})
        api.store.put("nodes", home("b", gpus=0))
        await until(lambda: view.pod("p") is not None and len(view.home_nodes()) == 2)
        assert len(view.picture().home) == 1

        changed.clear()
        noise = home("a") | {"status": home("a")["status"] | {"nodeInfo": {"bootID": "x"}}}
        api.store.put("nodes", noise)
        await asyncio.sleep(1)
        assert not changed.is_set()
        api.store.remove("nodes", "", "a")
        await until(lambda: not view.picture().home)


async def test_nothing_is_believed_before_the_first_list() -> None:
    """And Kueue is missed until it is known that there is none."""
    api = MemoryApi(away=True)
    async with seen(api) as view:
        await asyncio.sleep(5)
        signal = view.signal()
        assert (signal.is_synced, signal.kueue) == (False, Kueue.MISSING)
        api.come_back()
        await view.wait()
        assert (view.signal().is_synced, view.signal().kueue) == (True, Kueue.ABSENT)


async def test_a_broken_watch_says_for_how_long() -> None:
    """Until it runs again."""
    api = MemoryApi()
    api.store.put("nodes", home("a"))
    async with seen(api) as view:
        await view.wait()
        assert view.signal().home_nodes == 1
        api.go()
        await asyncio.sleep(100)
        assert view.signal().broken_for > 90
        api.come_back()
        await until(lambda: view.signal().broken_for == 0)


async def test_a_version_that_is_gone_is_listed_again() -> None:
    """What went meanwhile is not there any more."""
    api = MemoryApi()
    api.store.put("nodes", home("a"))
    async with seen(api) as view:
        await view.wait()
        api.go()
        await asyncio.sleep(1)
        api.store.remove("nodes", "", "a")
        api.store.expire()
        api.refuse("WATCH", "/nodes", 410)
        api.come_back()
        await until(lambda: not view.picture().home)


async def test_kueue_that_is_there_is_read() -> None:
    """Each Workload with the ClusterQueue that it would go to."""
    api = MemoryApi()
    api.store.put("apigroups", GROUP)
    api.store.put("localqueues", local_queue("train"))
    api.store.put("workloads", workload("waits"))
    api.store.put("workloads", workload("runs", admission={"clusterQueue": "other"}))
    async with seen(api) as view:
        await view.wait()
        await until(lambda: {w.cluster_queue for w in view.picture().workloads or ()} != {""})

        queues = {w.name: w.cluster_queue for w in view.picture().workloads or ()}
        assert queues == {"waits": "train", "runs": "other"}
        assert view.signal().kueue is Kueue.SERVED


async def test_kueue_may_be_installed_later_and_removed() -> None:
    """Absent, served, missed."""
    api = MemoryApi()
    async with seen(api) as view:
        await view.wait()
        assert (view.signal().kueue, view.picture().workloads) == (Kueue.ABSENT, None)
        api.store.put("apigroups", GROUP)
        api.store.put("localqueues", local_queue(None))
        await until(lambda: view.signal().kueue is Kueue.SERVED)
        assert view.picture().workloads == []

        api.store.remove("apigroups", "", "kueue.x-k8s.io")
        api.refuse("WATCH", "/workloads", *[404] * 9)
        api.go()
        api.come_back()
        await until(lambda: view.signal().kueue is Kueue.MISSING)


async def test_a_kueue_that_may_not_be_read_is_missed() -> None:
    """Said once, and nobody waits for it."""
    api = MemoryApi()
    api.store.put("apigroups", GROUP)
    api.refuse("GET", "/workloads", *[403] * 50)
    async with seen(api) as view:
        await view.wait()
        await view.kueue.looked.wait()
        assert view.signal().kueue is Kueue.MISSING


async def test_a_group_that_can_t_be_asked_for_is_missed() -> None:
    """Whether there is a Kueue is not known."""
    api = MemoryApi()
    api.refuse("GET", "/apis/kueue.x-k8s.io", *[403] * 2)
    news: list[int] = []
    view = KueueView(MemoryClient(api), GPU, lambda: news.append(1), look_again_seconds=5)
    task = asyncio.ensure_future(view.run())
    await asyncio.sleep(6)
    assert (view.state, len(news)) == (Kueue.MISSING, 2)
    await asyncio.sleep(6)
    assert view.state is Kueue.ABSENT
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
