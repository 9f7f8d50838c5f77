"""The cache of our pods, fed by a real watch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.eventually import eventually, running
from tests.support.model_apiserver import ModelApiServer
from tests.support.objects import pod
from vk_provider.kube.cache import MIRROR_ANNOTATION, PodCache
from vk_provider.kube.client import KubeClient
from vk_provider.kube.watch import WatchTimings
from vk_provider.pods.types import Json, PodUID

QUICK = WatchTimings(first_delay_seconds=0.01, longest_delay_seconds=0.05)

News = list[tuple[str, bool]]


@asynccontextmanager
async def caching(client: KubeClient) -> AsyncIterator[tuple[PodCache, News]]:
    """A synced cache of the node ``burst``, and what its subscribers heard."""
    cache = PodCache(client, "burst", timings=QUICK)
    news: News = []

    def note(uid: PodUID, pod: Json | None) -> None:
        news.append((uid, pod is not None))

    cache.subscribe(note)
    async with running(cache.run()):
        await eventually(cache.synced.is_set)
        yield cache, news


async def test_it_holds_our_pods_alone(api: ModelApiServer, client: KubeClient) -> None:
    """Another node's pods and mirror pods are not ours."""
    api.store.put("pods", pod("ours"))
    api.store.put("pods", pod("theirs", node="other"))
    api.store.put("pods", pod("static", annotations={MIRROR_ANNOTATION: "x"}))

    async with caching(client) as (cache, news):
        assert [each["metadata"]["name"] for each in cache.pods()] == ["ours"]
        assert cache.find("default", "ours") is cache.get(PodUID("uid-ours"))
        assert news == [("uid-ours", True)]


async def test_a_deletion_is_told_once(api: ModelApiServer, client: KubeClient) -> None:
    """None means: gone from the API."""
    api.store.put("pods", pod("a"))

    async with caching(client) as (cache, news):
        api.store.remove("pods", "default", "a")
        await eventually(lambda: not cache.pods())

        assert news == [("uid-a", True), ("uid-a", False)]
        assert cache.find("default", "a") is None


async def test_deletions_in_a_gap_are_found(api: ModelApiServer, client: KubeClient) -> None:
    """The API server was away and has forgotten its history; the relist tells what is gone."""
    api.store.put("pods", pod("a"))
    api.store.put("pods", pod("b"))

    async with caching(client) as (cache, news):
        await api.refuse()
        await eventually(lambda: cache.fault is not None)
        api.store.remove("pods", "default", "a")
        api.store.expire()
        await api.serve()
        await eventually(lambda: len(cache.pods()) == 1)

        assert news[-1] == ("uid-a", False)
        await eventually(lambda: cache.fault is None)


async def test_a_name_that_comes_back_is_another_pod(
    api: ModelApiServer, client: KubeClient
) -> None:
    """A StatefulSet's pod is recreated while we were cut off: both UIDs are told apart."""
    api.store.put("pods", pod("a", uid="old"))

    async with caching(client) as (cache, news):
        api.drop_watches()
        api.store.remove("pods", "default", "a")
        api.store.put("pods", pod("a", uid="new"))
        await eventually(lambda: cache.get(PodUID("new")))

        assert news == [("old", True), ("old", False), ("new", True)]
        found = cache.find("default", "a")
        assert found is not None
        assert found["metadata"]["uid"] == "new"


async def test_an_accepted_answer_is_not_undone(api: ModelApiServer, client: KubeClient) -> None:
    """The PATCH's answer is there at once; older versions that still arrive are dropped."""
    first = api.store.put("pods", pod("a"))

    async with caching(client) as (cache, news):
        answer = {**first, "metadata": {**first["metadata"], "resourceVersion": "999999"}}
        cache.accept(answer)
        cache.accept(first)

        assert cache.get(PodUID("uid-a")) is answer
        assert len(news) == 2


async def test_an_answer_about_a_pod_that_is_gone_is_dropped(
    api: ModelApiServer, client: KubeClient
) -> None:
    """It may come after the pod's last event, and must not bring the pod back."""
    async with caching(client) as (cache, news):
        cache.accept(api.store.put("pods", pod("a", node="other")))

        assert not cache.pods()
        assert not news
