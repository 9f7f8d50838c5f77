"""ConfigMaps, Secrets and Services that pods refer to, each watched while it is wanted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.eventually import eventually, running
from tests.support.model_apiserver import ModelApiServer
from tests.support.objects import keyed
from vk_provider.faults import ForbiddenError, KubeUnavailableError
from vk_provider.kube.client import KubeClient
from vk_provider.kube.references import ReferenceCache
from vk_provider.kube.services import Services
from vk_provider.kube.watch import WatchTimings
from vk_provider.pods.references import ObjectKey
from vk_provider.pods.types import PodUID

QUICK = WatchTimings(first_delay_seconds=0.01, longest_delay_seconds=0.05)
SETTINGS = ObjectKey("ConfigMap", "default", "settings")
PASSWORD = ObjectKey("Secret", "default", "password")
A, B = PodUID("a"), PodUID("b")


@asynccontextmanager
async def following(client: KubeClient) -> AsyncIterator[tuple[ReferenceCache, list[ObjectKey]]]:
    """A running reference cache, and the keys whose change it told."""
    changed: list[ObjectKey] = []
    cache = ReferenceCache(client, changed.append, timings=QUICK)
    async with running(cache.run()):
        yield cache, changed


async def test_only_what_is_wanted_is_watched(api: ModelApiServer, client: KubeClient) -> None:
    """One request per object, by its name; nothing else of the namespace crosses the wire."""
    api.store.put("configmaps", keyed("ConfigMap", "settings", data={"x": "1"}))
    api.store.put("configmaps", keyed("ConfigMap", "other"))

    async with following(client) as (cache, _):
        cache.want(A, frozenset({SETTINGS, PASSWORD}))
        found = await cache.get(SETTINGS)

        assert found is not None
        assert found["data"] == {"x": "1"}
        assert cache.known(SETTINGS) is found
        assert await cache.get(PASSWORD) is None
    selectors = {call.query["fieldSelector"] for call in api.requests}
    assert selectors == {"metadata.name=settings", "metadata.name=password"}


async def test_a_change_is_told_with_its_key(api: ModelApiServer, client: KubeClient) -> None:
    """A missing object that appears, changes and goes: whoever waits for it hears of it."""
    async with following(client) as (cache, changed):
        cache.want(A, frozenset({SETTINGS}))
        assert await cache.get(SETTINGS) is None

        api.store.put("configmaps", keyed("ConfigMap", "settings"))
        await eventually(lambda: changed == [SETTINGS])
        api.store.remove("configmaps", "default", "settings")
        await eventually(lambda: changed == [SETTINGS] * 2)

        assert await cache.get(SETTINGS) is None
        assert cache.owners(SETTINGS) == {A}


async def test_the_last_owner_closes_the_watch(api: ModelApiServer, client: KubeClient) -> None:
    """Two pods share one watch; it ends with the second of them."""
    async with following(client) as (cache, _):
        cache.want(A, frozenset({SETTINGS}))
        cache.want(B, frozenset({SETTINGS, PASSWORD}))
        await eventually(lambda: len(api.store.watchers) == 2)

        cache.want(B, frozenset({SETTINGS}))
        await eventually(lambda: len(api.store.watchers) == 1)
        cache.release(A)
        assert await cache.get(SETTINGS) is None
        cache.release(B)
        await eventually(lambda: not api.store.watchers)

        assert cache.known(SETTINGS) is None
        assert cache.fault(SETTINGS) is None


async def test_what_was_wanted_before_the_run_is_watched(
    api: ModelApiServer, client: KubeClient
) -> None:
    """Pods may be known before the cache runs."""
    api.store.put("secrets", keyed("Secret", "password"))
    cache = ReferenceCache(client, lambda _: None, timings=QUICK)
    cache.want(A, frozenset({PASSWORD}))

    async with running(cache.run()):
        assert await cache.get(PASSWORD) is not None


async def test_a_namespace_that_was_not_granted_holds_nothing(
    api: ModelApiServer, client: KubeClient
) -> None:
    """The pod waits with the API server's own words; once granted, it is told."""
    api.store.put("secrets", keyed("Secret", "password"))
    lie = api.lie(403, path="/secrets", times=10**6, message="secrets is forbidden")

    async with following(client) as (cache, changed):
        cache.want(A, frozenset({PASSWORD}))
        assert await cache.get(PASSWORD) is None
        fault = cache.fault(PASSWORD)
        assert isinstance(fault, ForbiddenError)
        assert "secrets is forbidden" in str(fault)

        lie.times = 0
        await eventually(lambda: cache.known(PASSWORD))
        assert cache.fault(PASSWORD) is None
        assert changed[-1] == PASSWORD


async def test_no_answer_is_not_absence(api: ModelApiServer, client: KubeClient) -> None:
    """An API server that is away does not make a Secret missing."""
    await api.refuse()

    async with following(client) as (cache, _):
        cache.want(A, frozenset({PASSWORD}))
        with pytest.raises(KubeUnavailableError, match="secrets"):
            await cache.get(PASSWORD, seconds=0.1)


async def test_what_nobody_wants_is_not_asked_for(client: KubeClient) -> None:
    """A bug, said plainly."""
    with pytest.raises(LookupError, match="no pod wants it"):
        await ReferenceCache(client, lambda _: None).get(PASSWORD)


async def test_a_deletion_in_a_gap_is_found(api: ModelApiServer, client: KubeClient) -> None:
    """A relist without the object says that it is gone."""
    api.store.put("secrets", keyed("Secret", "password"))

    async with following(client) as (cache, changed):
        cache.want(A, frozenset({PASSWORD}))
        assert await cache.get(PASSWORD) is not None
        await api.refuse()
        api.store.remove("secrets", "default", "password")
        api.store.expire()
        await api.serve()
        await eventually(lambda: cache.known(PASSWORD) is None)

        assert changed[-1] == PASSWORD


async def test_services_are_watched_on_demand(api: ModelApiServer, client: KubeClient) -> None:
    """Those of the pod's namespace and of ``default``, from the first question on."""
    api.store.put("services", keyed("Service", "kubernetes"))
    api.store.put("services", keyed("Service", "db", namespace="team"))
    api.store.put("services", keyed("Service", "db", namespace="others"))
    services = Services(client, timings=QUICK)

    async with running(services.run()):
        assert not api.requests
        found = await services.of(A, "team")
        assert await services.of(B, "team") == found

    assert [each["metadata"]["name"] for each in found] == ["kubernetes", "db"]


async def test_services_of_a_namespace_without_pods_are_not_watched(
    api: ModelApiServer, client: KubeClient
) -> None:
    """Namespaces come and go, some clusters make one for each change that is to be tried."""
    services = Services(client, timings=QUICK)

    async with running(services.run()):
        for owner, namespace in ((A, "team"), (B, "team"), (PodUID("c"), "default")):
            await services.of(owner, namespace)
        services.release(A)
        services.release(PodUID("c"))
        services.release(PodUID("stranger"))
        await eventually(lambda: len(api.store.watchers) == 2)
        services.release(B)
        await eventually(lambda: len(api.store.watchers) == 1)
