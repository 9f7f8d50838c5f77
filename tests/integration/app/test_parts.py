"""The small parts of a node: look-ups for the server, secrets, the client CA, bounded ends."""

from __future__ import annotations

import asyncio
import base64
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.integration.loops.bench import CLUSTER, NODE, START, Bench, settings
from tests.integration.loops.memory_api import MemoryApi, MemoryClient
from tests.support.loop_clock import LoopClock
from tests.support.objects import keyed
from vk_provider.app import client_ca
from vk_provider.app.assembly import Whereabouts, assemble
from vk_provider.app.bounded import bounded
from vk_provider.app.client_ca import ClientCA
from vk_provider.app.lookup import Lookup
from vk_provider.app.read_secret import SecretReader
from vk_provider.faults import InvalidObjectError, KubeNotFoundError, ProviderError
from vk_provider.loops.shell import Shell
from vk_provider.metrics import Metrics

CA = "extension-apiserver-authentication"
pytestmark = pytest.mark.looptime


async def test_the_server_finds_pods_by_name_with_their_instances() -> None:
    """From memory; a pod without an instance has none, an unknown name is none."""
    async with Bench() as bench:
        bench.bind("web")
        bench.bind("waits", containers=[{"name": "main", "image": "i", "envFrom": [
            {"secretRef": {"name": "absent"}}]}])  # fmt: skip
        await bench.until(lambda: bench.phase("web") == "Running")
        node = bench.node
        lookup = Lookup(node.cache, node.workers, node.backends, node.kept_logs)
        assert {p["metadata"]["name"] for p in lookup.pods()} == {"web", "waits"}
        assert [p["metadata"]["name"] for p in lookup.running_pods()] == ["web"]
        found = lookup.find("default", "web")
        assert found is not None
        assert found.provider is node.backends["fake"].provider
        assert found.ref == bench.record("web").ref
        waits = lookup.find("default", "waits")
        assert waits is not None
        assert waits.provider is None
        assert lookup.find("default", "nobody") is None


async def test_providers_read_secrets_of_the_home_cluster() -> None:
    """By namespace, name and key; what is wrong is said without its value."""
    api = MemoryApi()
    good, bad = (base64.b64encode(each).decode() for each in (b"value", b"\xff\xfe"))
    api.store.put("secrets", keyed("Secret", "keys", data={"good": good, "bad": bad}))
    read = SecretReader(MemoryClient(api)).read
    assert await read("default", "keys", "good") == "value"
    with pytest.raises(KubeNotFoundError, match="has no key other"):
        await read("default", "keys", "other")
    with pytest.raises(InvalidObjectError, match="is not UTF-8 text"):
        await read("default", "keys", "bad")


async def test_admission_on_arrival_may_be_switched_off() -> None:
    """With it a pod larger than the node is refused; without it the backend decides."""
    huge = [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "5000"}}}]
    async with Bench() as bench:
        bench.bind("web", containers=huge)
        await bench.until(lambda: bench.phase("web") == "Failed")
        assert bench.reason("web") == "OutOfcpu"
        assert not bench.cloud.calls["create"]
    async with Bench(admission={"enabled": False}) as bench:
        bench.bind("web", containers=huge)
        await bench.until(lambda: bench.phase("web") == "Running")


async def test_a_pod_is_admitted_by_the_labels_that_the_node_has() -> None:
    """Also by one that somebody else gave it, whose news may come after the pod; not by less."""
    async with Bench() as bench:
        bench.bind("web", nodeSelector={"rack": "7", "type": "virtual-kubelet"})
        bench.bind("stray", nodeSelector={"rack": "8"})
        await bench.settle(0.5)
        node = bench.api.get("nodes", NODE, "") or {}
        labels = {**node["metadata"]["labels"], "rack": "7"}
        bench.api.store.put("nodes", {**node, "metadata": {**node["metadata"], "labels": labels}})
        await bench.until(lambda: bench.phase("web") == "Running")
        await bench.until(lambda: bench.phase("stray") == "Failed")
        assert bench.reason("stray") == "NodeAffinity"


async def test_the_cost_cap_holds_for_pods_that_come_together() -> None:
    """Two that fit only one at a time, bound past the scheduler: one gets in."""
    large = [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "600"}}}]
    async with Bench() as bench:
        bench.bind("a", containers=large)
        bench.bind("b", containers=large)
        await bench.until(lambda: bench.api.phases()["Running"] == 1)
        await bench.until(lambda: bench.api.phases()["Failed"] == 1)
        assert bench.cloud.calls["create"] == 1


async def test_the_client_ca_is_the_clusters_and_follows_its_rotation() -> None:
    """Without an answer nobody is named by a certificate, and tokens still work."""
    api = MemoryApi()
    authority = ClientCA(MemoryClient(api), None)
    await authority.load()
    assert authority() is None
    api.store.put("configmaps", keyed("ConfigMap", CA, "kube-system", data={"client-ca-file": "A"}))
    following = asyncio.ensure_future(authority.run())
    await asyncio.sleep(client_ca.REFRESH_SECONDS + 1)
    assert authority() == b"A"
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_a_client_ca_file_is_read_at_each_use(tmp_path: Path) -> None:
    """A rotation needs no restart, and the cluster is not asked."""
    api, file = MemoryApi(), tmp_path / "ca.crt"
    file.write_bytes(b"one")
    authority = ClientCA(MemoryClient(api), str(file))
    await authority.load()
    await authority.run()
    assert authority() == b"one"
    file.write_bytes(b"two")
    assert authority() == b"two"
    assert not api.calls


async def test_an_end_that_takes_too_long_is_left_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also one that does not listen when it is cancelled; a fault is said, not raised."""

    async def deaf() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(100)

    async def fails() -> None:
        raise ProviderError("no goodbye")

    loop = asyncio.get_running_loop()
    begun = loop.time()
    await bounded(deaf(), 2.0, "the deaf one")
    assert loop.time() - begun <= 3.1
    await bounded(fails(), 2.0, "the failing one")
    await bounded(asyncio.sleep(0), 2.0, "the good one")
    assert "the deaf one took more than 2 s" in caplog.text
    assert "the failing one failed: no goodbye" in caplog.text
    assert "the good one" not in caplog.text
    await asyncio.sleep(200)


async def test_services_are_not_watched_where_no_instance_reaches_them() -> None:
    """Containers there get no variables that announce services either."""
    shell, where = Shell(LoopClock(START), Metrics()), Whereabouts(CLUSTER, "10.0.0.1")
    async with AsyncExitStack() as stack:
        node = await assemble(settings(), MemoryClient(MemoryApi()), shell, where, stack)
        names = [name for name, work in node.loops() if work.close() is None]
    found = set(names)
    assert "services" not in found
    assert found >= {"pods", "references", "events", "intake", "list fake", "watch fake"}
