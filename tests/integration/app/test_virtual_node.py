"""One virtual node in a process: it leads, waits, loses leadership, comes back, and stops."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import socket
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.model_apiserver import ModelApiServer
from tests.support.objects import pod
from vk_provider.app.virtual_node import VirtualNode
from vk_provider.faults import ConfigError, FieldProblem, KubeUnavailableError, UnavailableError
from vk_provider.metrics import Metrics
from vk_provider.settings import NodeSettings
from vk_provider.settings_parse import parse_node
from vk_provider.testing.fake import _SHARED, FakeBackend

VERSION = b'{"gitVersion": "v1.36.0"}'
ELECTION = {"leaseDurationSeconds": 1.5, "renewDeadlineSeconds": 1, "retryPeriodSeconds": 0.2}
MOST_WRITES = 16
_numbers = itertools.count()


def settings(name: str = "burst", **spec: Any) -> NodeSettings:
    """A node over a fake service, on a port that the system picks."""
    document = {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "VirtualNode",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"cpu": "100", "memory": "1Ti", "pods": "50"},
            "backends": [{"name": "fake", "provider": "fake", "config": {"service": service()}}],
            "clusterId": "home",
            "tickSeconds": 0.2,
            "taints": [],
            "server": {"port": 0, "plainPort": 0, "address": "127.0.0.1"},
            "leaderElection": ELECTION,
            **spec,
        },
    }
    problems: list[FieldProblem] = []
    node = parse_node(document, problems)
    assert not problems, [str(problem) for problem in problems]
    return node


def service() -> str:
    """A fake service of its own."""
    return f"app-{next(_numbers)}"


def cloud_of(node: NodeSettings) -> FakeBackend:
    """The fake service behind a node."""
    return _SHARED[node.backends[0].config["service"]]


class Running:
    """A node that runs beside the test."""

    def __init__(self, api: ModelApiServer, node: NodeSettings) -> None:
        self.stop = asyncio.Event()
        self.metrics = Metrics()
        self.node = VirtualNode(node, api.identity(), "system", self.metrics)
        self.task = asyncio.ensure_future(self.node.run(self.stop))

    def leads(self) -> bool:
        """Whether it says so."""
        labels = {"node": self.node.settings.name}
        return self.metrics.registry.get_sample_value("vk_provider_leader", labels) == 1

    async def end(self) -> float:
        """Stop it; how long that took."""
        begun = time.monotonic()
        self.stop.set()
        await self.task
        return time.monotonic() - begun


@pytest.fixture
async def api() -> AsyncIterator[ModelApiServer]:
    """An API server that says its version."""
    async with ModelApiServer() as server:
        server.lie(200, path="/version", times=1000, body=VERSION)
        yield server


@asynccontextmanager
async def running(api: ModelApiServer, node: NodeSettings) -> AsyncIterator[Running]:
    """A node that leads, and is stopped afterwards."""
    one = Running(api, node)
    try:
        await eventually(lambda: one.leads() or one.task.done(), "leading")
        yield one
    finally:
        one.stop.set()
        await asyncio.wait({one.task})


@asynccontextmanager
async def without_collector() -> AsyncIterator[None]:
    """As good as in a process that runs: it looks at everything about once a year. And without
    what a test keeps: log records, with faults and all that these came by."""
    gc.disable()
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        gc.enable()


def lease(api: ModelApiServer, name: str = "burst") -> dict[str, Any]:
    """The election's Lease."""
    return api.store.objects["leases", "system", f"vk-provider-{name}"]


def is_renewed(api: ModelApiServer, before: str) -> bool:
    """Whether the election's Lease was renewed since."""
    return bool(lease(api)["spec"]["renewTime"] != before)


def conditions(api: ModelApiServer, name: str = "burst") -> dict[str, str]:
    """The Node's conditions."""
    status = api.store.objects["nodes", "", name]["status"]
    return {one["type"]: one["status"] for one in status["conditions"]}


def phase(api: ModelApiServer, name: str) -> str:
    """A pod's phase."""
    return str(api.store.objects["pods", "default", name]["status"].get("phase"))


async def test_it_leads_serves_and_stops_without_a_trace(api: ModelApiServer) -> None:
    """Ready stays True, the instance runs on, leadership is given up."""
    node = settings()
    api.store.put("pods", pod("web"))
    async with running(api, node) as one:
        await eventually(lambda: phase(api, "web") == "Running")
        await eventually(lambda: one.node.unready() is None)
        assert one.node.stuck() is None
        assert lease(api)["spec"]["holderIdentity"]
        assert await one.end() < 10
    assert conditions(api)["Ready"] == "True"
    assert lease(api)["spec"]["holderIdentity"] == ""
    assert len(cloud_of(node).instances) == 1
    assert phase(api, "web") == "Running"
    assert not one.leads()


async def test_a_second_start_adopts_what_runs(api: ModelApiServer) -> None:
    """The same Node, the same instance."""
    node = settings()
    api.store.put("pods", pod("web"))
    async with running(api, node):
        await eventually(lambda: phase(api, "web") == "Running")
    async with running(api, node) as one:
        await eventually(lambda: one.node.unready() is None)
        await eventually(lambda: cloud_of(node).calls["list"] > 4)
    assert cloud_of(node).calls["create"] == 1


async def test_an_election_that_is_forbidden_is_told_once_and_fails_readiness(
    api: ModelApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The right that is missing is named; a rollout does not go on over it."""
    caplog.set_level(logging.WARNING)
    api.lie(403, path="/leases/vk-provider-burst", times=1000, reason="Forbidden")
    one = Running(api, settings())
    assert one.node.unready() == "starting"
    await eventually(lambda: one.node.unready() not in (None, "starting"))
    reads = len(api.requests)
    await eventually(lambda: len(api.requests) > reads + 3)
    why = one.node.unready() or ""
    assert "lease system/vk-provider-burst may not be used" in why
    assert "get, create, update" in why
    assert sum("not renewed" in record.message for record in caplog.records) == 1
    assert await one.end() < 5


async def test_a_standby_is_ready_and_does_nothing(api: ModelApiServer) -> None:
    """Or a rollout of two replicas would never end."""
    async with running(api, settings()):
        standby = Running(api, settings())
        await eventually(lambda: standby.node.unready() is None)
        await asyncio.sleep(0.5)
        assert not standby.leads()
        assert standby.node.stuck() is None
        await standby.end()


async def test_a_standby_takes_over(api: ModelApiServer) -> None:
    """When the leader gives up, and without making anything twice."""
    node = settings()
    api.store.put("pods", pod("web"))
    async with running(api, node) as first:
        await eventually(lambda: phase(api, "web") == "Running")
        standby = Running(api, node)
        await eventually(lambda: standby.node.unready() is None)
        await first.end()
        await eventually(standby.leads)
        await eventually(lambda: standby.node.unready() is None)
        await standby.end()
    assert cloud_of(node).calls["create"] == 1


async def test_lost_leadership_ends_the_term_and_not_the_process(api: ModelApiServer) -> None:
    """Another one took the Lease: nothing is written until it is free again. Nothing is kept of
    the term either, though the collector rarely looks."""
    node = settings()
    async with without_collector(), running(api, node) as one:
        first = weakref.ref(one.node._term)
        taken = lease(api)
        other = {**taken["spec"], "holderIdentity": "other", "leaseDurationSeconds": 1}
        api.store.put("leases", {**taken, "spec": other})
        await eventually(lambda: not one.leads())
        api.store.put("pods", pod("web"))
        await eventually(one.leads)
        await eventually(lambda: phase(api, "web") == "Running")
        assert not one.task.done()
        assert first() is None


async def test_an_outage_of_the_api_server_is_outlived(api: ModelApiServer) -> None:
    """Leadership ends with it; when it is back everything is rebuilt, nothing made twice."""
    node = settings()
    api.store.put("pods", pod("web"))
    async with running(api, node) as one:
        await eventually(lambda: phase(api, "web") == "Running")
        await api.refuse()
        await eventually(lambda: not one.leads())
        assert not one.task.done()
        await api.serve()
        await eventually(one.leads)
        api.store.put("pods", pod("next"))
        await eventually(lambda: phase(api, "next") == "Running")
    assert cloud_of(node).calls["create"] == 2


async def test_writes_that_hang_hold_up_no_renewal(api: ModelApiServer) -> None:
    """Every write that may go out at once waits for its answer; leadership does not (C043)."""
    answer = asyncio.Event()
    for number in range(30):
        api.store.put("pods", pod(f"web-{number}"))
    lie = api.lie(404, verb="PATCH", path="/pods/", times=1000, until=answer)
    async with running(api, settings()) as one:
        try:
            await eventually(lambda: lie.times <= 1000 - MOST_WRITES, "writes that hang")
            for _ in range(5):
                await eventually(partial(is_renewed, api, lease(api)["spec"]["renewTime"]))
            assert one.leads()
        finally:
            answer.set()


async def test_without_an_election_it_is_the_node_at_once(api: ModelApiServer) -> None:
    """For a single replica that nobody competes with."""
    async with running(api, settings(leaderElection={"enabled": False})) as one:
        await eventually(lambda: one.node.unready() is None)
    assert not [key for key in api.store.objects if key[1] == "system"]


async def test_a_foreign_node_is_a_configuration_error(api: ModelApiServer) -> None:
    """Said with what to do, and nothing of it is touched."""
    theirs = api.store.put("nodes", {"kind": "Node", "metadata": {"name": "burst"}})
    one = Running(api, settings())
    with pytest.raises(ConfigError, match="was not made by vk-provider"):
        await one.task
    assert api.store.objects["nodes", "", "burst"] == theirs


async def test_a_port_that_is_taken_is_a_configuration_error(api: ModelApiServer) -> None:
    """With the path of the field."""
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        server = {"port": port, "address": "127.0.0.1"}
        one = Running(api, settings(server=server))
        with pytest.raises(ConfigError, match=r"spec\.server\.port: can't listen on"):
            await one.task


async def test_a_backend_that_can_not_be_opened_is_said_and_leadership_given_up(
    api: ModelApiServer,
) -> None:
    """Nothing of the node is there yet that could be closed."""
    nowhere = {"name": "other", "provider": "kubernetes", "config": {"kubeconfig": "/nowhere"}}
    one = Running(api, settings(backends=[nowhere]))
    with pytest.raises(ConfigError, match="/nowhere"):
        await one.task
    assert lease(api)["spec"]["holderIdentity"] == ""


async def test_a_cluster_that_can_not_be_asked_at_start_is_a_fault(api: ModelApiServer) -> None:
    """A wrong address is found at once, not after an hour of waiting."""
    await api.refuse()
    one = Running(api, settings())
    with pytest.raises(KubeUnavailableError):
        await one.task


async def test_the_cluster_id_is_the_uid_of_kube_system(api: ModelApiServer) -> None:
    """Unless it is configured."""
    metadata = {"name": "kube-system", "uid": "the-uid"}
    api.store.put("namespaces", {"kind": "Namespace", "metadata": metadata})
    node = settings(clusterId=None)
    api.store.put("pods", pod("web"))
    async with running(api, node):
        await eventually(lambda: phase(api, "web") == "Running")
    (instance,) = cloud_of(node).instances.values()
    assert instance.stamp is not None
    assert instance.stamp.cluster_id == "the-uid"


async def test_a_backend_that_hangs_does_not_hold_up_a_stop(api: ModelApiServer) -> None:
    """Its call has a few seconds to finish, then it is cut; its outcome is for the next start."""
    node = settings()
    async with running(api, node) as one:
        await eventually(lambda: one.node.unready() is None)
        cloud_of(node).script.hold_next_create()
        api.store.put("pods", pod("web"))
        await cloud_of(node).script.create_held()
        assert await one.end() < 15
    assert one.task.exception() is None
    async with running(api, node):
        await eventually(lambda: phase(api, "web") == "Running")
    assert cloud_of(node).calls["create"] == 1


async def test_two_nodes_live_in_one_process(api: ModelApiServer) -> None:
    """Each with its Lease and its pods; metrics tell them apart."""
    first, second = settings("one"), settings("two")
    api.store.put("pods", pod("a", node="one"))
    api.store.put("pods", pod("b", node="two"))
    async with running(api, first), running(api, second):
        await eventually(lambda: (phase(api, "a"), phase(api, "b")) == ("Running", "Running"))
    assert len(cloud_of(first).instances) == len(cloud_of(second).instances) == 1


async def test_calls_and_resumed_watches_are_counted(api: ModelApiServer) -> None:
    """By verb, resource and answer."""
    async with running(api, settings()) as one:
        await eventually(lambda: one.node.unready() is None)
        sample = one.metrics.registry.get_sample_value
        labels = {"verb": "PUT", "resource": "leases", "code": "200"}
        await eventually(lambda: sample("vk_provider_api_requests_total", labels))
        api.drop_watches()
        name = "vk_provider_watch_restarts_total"
        await eventually(lambda: sample(name, {"resource": "pods", "reason": "Ended"}))


async def test_pods_that_can_not_be_listed_are_a_reason_not_to_be_ready(
    api: ModelApiServer,
) -> None:
    """A right that is missing shows in readiness, with the API server's words."""
    api.lie(403, path="/api/v1/pods", times=1000, reason="Forbidden", message="no pods for you")
    async with running(api, settings()) as one:
        await eventually(lambda: "no pods for you" in (one.node.unready() or ""))


async def test_failing_lists_fail_neither_liveness_nor_readiness(api: ModelApiServer) -> None:
    """A restart of ours would not heal a backend."""
    node = settings(door={"outageAfterSeconds": 0.2})
    async with running(api, node) as one:
        await eventually(lambda: one.node.unready() is None)
        cloud_of(node).script.fail_always("list", UnavailableError("503"))
        await eventually(lambda: api.store.objects["nodes", "", "burst"]["spec"].get("taints"))
        assert (one.node.unready(), one.node.stuck()) == (None, None)
