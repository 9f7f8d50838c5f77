"""The Node and its Lease: kept truthful, made anew when deleted, never taken from anybody."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.integration.loops.bench import NODE, Bench
from vk_provider.faults import ConfigError, ConflictError
from vk_provider.loops.registration import set_taints
from vk_provider.node.lease import NAMESPACE
from vk_provider.node.taints import OUR_KEYS


def lease(bench: Bench) -> dict[str, Any]:
    """The Node's Lease."""
    found = bench.api.get("leases", NODE, NAMESPACE)
    assert found is not None
    return found


async def test_the_node_says_that_it_is_ready_and_then_nothing() -> None:
    """Status on change, else every five minutes."""
    async with Bench() as bench:
        await bench.settle(60)
        node = bench.api.get("nodes", NODE, "") or {}
        assert {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"] == "True"
        assert node["metadata"]["annotations"]["vk-provider.dev/door"] == "open"
        for minutes in (5, 10):
            writes = bench.api.count("PATCH", "/nodes/")
            await bench.settle(60 * minutes - 10 - bench.shell.clock.steady())
            assert bench.api.count("PATCH", "/nodes/") == writes
            await bench.settle(20)
            assert bench.api.count("PATCH", "/nodes/") == writes + 1
        assert bench.api.count("PATCH", "/nodes/burst/status") == 3


async def test_a_deleted_node_is_registered_anew() -> None:
    """Its taint comes back too, if the door is closed."""
    async with Bench({"fake": {"offers": [{"name": "cpu", "capacity": 0}]}}) as bench:
        bench.bind("web")
        await bench.until(lambda: bool(bench.taints()))
        bench.api.store.remove("nodes", "", NODE)
        await bench.until(lambda: bench.api.get("nodes", NODE, "") is not None)
        await bench.until(lambda: bench.taints() == {"vk-provider.dev/unavailable": "capacity"})


async def test_a_node_made_anew_by_somebody_is_adopted_if_it_is_ours() -> None:
    """The same name with another UID, and our mark alone: it gets all that is ours."""
    async with Bench() as bench:
        ours = bench.api.store.remove("nodes", "", NODE)
        metadata = {k: v for k, v in ours["metadata"].items() if k not in ("uid", "labels")}
        made = bench.api.store.put("nodes", {**ours, "metadata": metadata, "status": {}})
        await bench.settle(320)
        node = bench.api.get("nodes", NODE, "") or {}
        assert bench.heartbeat.node["metadata"]["uid"] == made["metadata"]["uid"]
        assert bench.node.threshold.node_uid == made["metadata"]["uid"]
        assert node["metadata"]["labels"] == ours["metadata"]["labels"]
        assert node["status"]["conditions"]


async def test_a_foreign_node_ends_the_work_with_a_clear_message() -> None:
    """We never take over what carries no mark of ours."""
    bench = Bench()
    bench.api.store.put("nodes", {"kind": "Node", "metadata": {"name": NODE}})
    with pytest.raises(ConfigError, match="was not made by vk-provider"):
        await bench.start()


async def test_a_foreign_node_that_takes_the_name_later_is_left_alone() -> None:
    """Nothing is written to it, neither status nor annotations nor a closed door's taint."""
    bench = Bench({"fake": {"offers": [{"name": "cpu", "capacity": 0}]}})
    await bench.start()
    bench.api.store.remove("nodes", "", NODE)
    theirs = {"kind": "Node", "metadata": {"name": NODE, "uid": "theirs"}}
    theirs = bench.api.store.put("nodes", theirs)
    bench.bind("web")
    await bench.settle(320)
    with pytest.raises(ConfigError, match="was not made by vk-provider"):
        await bench.stop()
    assert bench.api.get("nodes", NODE, "") == theirs


async def test_a_registration_that_is_refused_is_tried_again() -> None:
    """The API server fails while the Node has to be made anew."""
    async with Bench() as bench:
        bench.api.store.remove("nodes", "", NODE)
        bench.api.refuse("POST", "/nodes", *[403] * 3)
        await bench.until(lambda: bench.api.get("nodes", NODE, "") is not None, 400)


async def test_a_status_that_is_refused_is_sent_again() -> None:
    """And the door is not believed to be published before."""
    async with Bench({"fake": {"offers": [{"name": "cpu", "capacity": 0}]}}) as bench:
        bench.api.refuse("PATCH", "/nodes/burst/status", *[403] * 3)
        bench.bind("web")
        await bench.settle(3)
        assert not bench.node.threshold.board.published
        assert bench.phase("web") == "Pending"
        await bench.until(lambda: bench.phase("web") == "Failed")
        assert bench.node.threshold.board.published


async def test_somebody_who_edits_taints_beside_us_keeps_theirs() -> None:
    """Read, edit, write; again after a conflict."""
    async with Bench() as bench:
        node = bench.api.get("nodes", NODE, "") or {}
        theirs = {"key": "theirs", "value": "", "effect": "NoSchedule"}
        bench.api.store.put("nodes", {**node, "spec": {**node["spec"], "taints": [theirs]}})
        bench.api.refuse("PATCH", "/nodes/burst", 409)
        ours = {"key": "vk-provider.dev/unavailable", "value": "capacity", "effect": "NoSchedule"}
        await set_taints(bench.client, node, [ours], OUR_KEYS)
        assert set(bench.taints()) == {"theirs", "vk-provider.dev/unavailable"}


async def test_taints_that_never_hold_still_are_a_conflict() -> None:
    """Somebody writes faster than we: said, not looped over."""
    async with Bench() as bench:
        bench.api.refuse("PATCH", "/nodes/burst", *[409] * 50)
        ours = {"key": "vk-provider.dev/unavailable", "value": "capacity", "effect": "NoSchedule"}
        with pytest.raises(ConflictError):
            await set_taints(bench.client, bench.heartbeat.node, [ours], OUR_KEYS)


async def test_taints_are_not_set_on_a_node_that_took_the_name() -> None:
    """Between two looks at it."""
    async with Bench() as bench:
        ours = {**bench.heartbeat.node, "metadata": {"name": NODE, "uid": "gone"}}
        with pytest.raises(ConflictError, match="is another one now"):
            await set_taints(bench.client, ours, [], OUR_KEYS)


async def test_the_lease_is_renewed_every_ten_seconds() -> None:
    """One write each time, no read."""
    async with Bench() as bench:
        await bench.settle(5)
        before, reads = lease(bench)["spec"]["renewTime"], bench.api.count("GET", "/leases/")
        await bench.settle(31)
        assert lease(bench)["spec"]["renewTime"] > before
        assert bench.api.count("PUT", "/leases/") == 3
        assert bench.api.count("GET", "/leases/") == reads


async def test_a_lease_that_somebody_wrote_is_read_and_taken() -> None:
    """A conflict costs one read and one more write."""
    async with Bench() as bench:
        await bench.settle(5)
        bench.api.store.put("leases", lease(bench))
        await bench.settle(11)
        assert bench.lease.renewed is not None
        assert bench.api.count("PUT", "/leases/") == 2


async def test_a_lease_that_is_gone_is_made_anew() -> None:
    """And everything is reported again, since the Node may be a new one."""
    async with Bench() as bench:
        await bench.settle(5)
        bench.api.store.remove("leases", NAMESPACE, NODE)
        await bench.until(lambda: bench.api.get("leases", NODE, NAMESPACE) is not None)


async def test_an_existing_lease_is_taken_over_at_start() -> None:
    """A predecessor's Lease is there already."""
    bench = Bench()
    metadata = {"name": NODE, "namespace": NAMESPACE}
    bench.api.store.put("leases", {"kind": "Lease", "metadata": metadata, "spec": {}})
    await bench.start()
    await bench.settle(5)
    assert lease(bench)["spec"]["holderIdentity"] == NODE
    await bench.stop()


async def test_a_late_renewal_reports_everything_again() -> None:
    """The control plane has written Unknown over our conditions meanwhile."""
    async with Bench() as bench:
        await bench.settle(15)
        bench.api.go()
        await bench.settle(120)
        node = bench.api.get("nodes", NODE, "") or {}
        unknown = [{**c, "status": "Unknown"} for c in node["status"]["conditions"]]
        status = {**node["status"], "conditions": unknown}
        bench.api.store.put("nodes", {**node, "status": status})
        bench.api.come_back()
        await bench.until(lambda: _ready(bench) == "True", 60)


def _ready(bench: Bench) -> str:
    node = bench.api.get("nodes", NODE, "") or {}
    found: str = {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"]
    return found


async def test_a_loop_that_does_not_turn_is_noticed() -> None:
    """Liveness: an outage of others is none of it, a loop that hangs is."""
    async with Bench() as bench:
        await bench.settle(55)
        assert bench.shell.stuck() is None
        bench.shell.beat("list fake", 0.0)
        bench.shell.beat("heartbeat", 1e6)
        await asyncio.sleep(0.01)
        assert bench.shell.stuck() == "loop list fake of node burst is 0 s overdue"


async def test_a_node_that_appears_and_disappears_is_a_conflict() -> None:
    """Registration ends with a sentence, not with a loop."""
    bench = Bench()
    bench.api.refuse("GET", "/nodes/burst", *[404] * 50)
    bench.api.refuse("POST", "/nodes", *[409] * 50)
    with pytest.raises(ConflictError, match="appears and disappears"):
        await bench.start()


async def test_permanent_taints_are_set_on_an_adopted_node() -> None:
    """Somebody removed ours: adoption puts it back and leaves the others."""
    bench = Bench(taints=[{"key": "mine", "value": "x", "effect": "NoSchedule"}])
    bench.api.store.put(
        "nodes",
        {
            "kind": "Node",
            "metadata": {
                "name": NODE,
                "annotations": {"vk-provider.dev/managed-by": "vk-provider"},
            },
            "spec": {"taints": [{"key": "theirs", "effect": "NoSchedule"}]},
        },
    )
    await bench.start()
    node = bench.api.get("nodes", NODE, "") or {}
    assert {t["key"] for t in node["spec"]["taints"]} == {"mine", "theirs"}
    await bench.stop()


async def test_what_somebody_writes_over_the_status_is_put_right_within_seconds() -> None:
    """Not with the five-minute report: until then Ready=False would have moved every pod."""
    async with Bench() as bench:
        await bench.settle(30)
        node = bench.api.get("nodes", NODE, "") or {}
        before, writes = node["status"], bench.api.count("PATCH", "/nodes/")
        by_hand = {
            "allocatable": {"pods": "1"},
            "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}],
            "conditions": [{"type": "Ready", "status": "False", "reason": "X", "message": "x"}],
        }
        bench.api.store.put("nodes", {**node, "status": {**before, **by_hand}})
        await bench.settle(11)
        after = (bench.api.get("nodes", NODE, "") or {})["status"]
        assert after["allocatable"] == before["allocatable"]
        assert after["addresses"] == before["addresses"]
        assert {c["type"]: c["status"] for c in after["conditions"]}["Ready"] == "True"
        assert bench.api.count("PATCH", "/nodes/") == writes + 1
        await bench.settle(120)
        assert bench.api.count("PATCH", "/nodes/") == writes + 1


async def test_the_taint_of_a_closed_door_comes_back() -> None:
    """Somebody took it away while the door is closed; theirs stay."""
    async with Bench({"fake": {"offers": [{"name": "cpu", "capacity": 0}]}}) as bench:
        bench.bind("web")
        await bench.until(lambda: bool(bench.taints()))
        node = bench.api.get("nodes", NODE, "") or {}
        theirs = {"key": "example.com/x", "value": "y", "effect": "NoSchedule"}
        bench.api.store.put("nodes", {**node, "spec": {**node["spec"], "taints": [theirs]}})
        await bench.until(
            lambda: (
                bench.taints() == {"vk-provider.dev/unavailable": "capacity", "example.com/x": "y"}
            ),
            11,
        )


async def test_what_somebody_takes_away_of_the_configuration_comes_back() -> None:
    """Labels, the mark (without which no restart would find its Node) and the permanent taint."""
    async with Bench(taints=[{"key": "mine", "value": "x", "effect": "NoSchedule"}]) as bench:
        await bench.settle(30)
        before = bench.api.get("nodes", NODE, "") or {}
        theirs = {"key": "example.com/x", "value": "y", "effect": "NoSchedule"}
        metadata = {**before["metadata"], "annotations": {"a": "b"}, "labels": {"c": "d"}}
        edited = {**before, "metadata": metadata, "spec": {**before["spec"], "taints": [theirs]}}
        bench.api.store.put("nodes", edited)
        await bench.settle(11)
        after = bench.api.get("nodes", NODE, "") or {}
        assert after["metadata"]["labels"] == {**before["metadata"]["labels"], "c": "d"}
        assert after["metadata"]["annotations"] == {**before["metadata"]["annotations"], "a": "b"}
        assert bench.taints() == {"example.com/x": "y", "mine": "x"}
        writes = bench.api.count("PATCH", "/nodes/")
        await bench.settle(120)
        assert bench.api.count("PATCH", "/nodes/") == writes
