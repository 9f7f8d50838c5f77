"""Placement and budgets as pods, their owners and the Node meet them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from tests.integration.loops.bench import NODE, START, Bench
from vk_provider.faults import UnavailableError
from vk_provider.placement.budget import Caps
from vk_provider.testing.builders import uid_of

TWO: dict[str, dict[str, Any]] = {"one": {"offers": [{"name": "cpu"}]}, "two": {}}
SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "set-1"}
ORDINAL: dict[str, Any] = {"ownerReferences": [{**SET, "controller": True}]}


def placed(bench: Bench, name: str) -> dict[str, Any]:
    """The placement annotation of a pod."""
    note: dict[str, Any] = json.loads(
        bench.api.pod(name)["metadata"]["annotations"]["vk-provider.dev/placement"]
    )
    return note


def is_in(bench: Bench, name: str, phase: str) -> bool:
    """Whether a pod is in this phase."""
    return bench.phase(name) == phase


def note(bench: Bench, name: str) -> str:
    """An annotation of the Node."""
    node = bench.api.get("nodes", NODE, "") or {}
    return str(node["metadata"]["annotations"].get(f"vk-provider.dev/{name}", ""))


async def test_spread_evens_out_pods_that_come_in_the_same_moment() -> None:
    """Also those that are ranked before the first create."""
    async with Bench(TWO, placement={"policy": "spread"}) as bench:
        for number in range(10):
            bench.bind(f"web-{number}")
        await bench.until(lambda: bench.api.phases()["Running"] == 10)
        homes = [placed(bench, f"web-{number}")["backend"] for number in range(10)]
        assert (homes.count("one"), homes.count("two")) == (5, 5)
        assert placed(bench, "web-0")["why"] == "0 instances there"


async def test_the_fastest_start_wins_once_it_was_seen() -> None:
    """Exported too."""
    slow: dict[str, Any] = {"startAfterSeconds": 90, "offers": [{"name": "cpu", "usdPerHour": 1}]}
    fast: dict[str, Any] = {"startAfterSeconds": 5, "offers": [{"name": "cpu", "usdPerHour": 9}]}
    async with Bench({"slow": slow, "fast": fast}, placement={"policy": "fastest-start"}) as bench:
        for name, backend in (("first", "slow"), ("second", "fast")):
            wish = {"annotations": {"vk-provider.dev/backends": backend}}
            bench.bind(name, metadata=wish)
            await bench.until(partial(is_in, bench, name, "Running"), 200)
        bench.bind("third")
        await bench.until(lambda: bench.phase("third") == "Running")
        assert placed(bench, "third")["backend"] == "fast"
        assert placed(bench, "third")["why"] == "starts within 5 s as a rule"
        seen = {"node": NODE, "backend": "slow", "gpu_type": "", "quantile": "0.95"}
        assert bench.value("start_seen_seconds", **seen) == 90


async def test_an_ordinal_comes_back_to_its_backend_also_after_a_restart() -> None:
    """The memory is the placement annotation of the pods themselves."""
    clouds = {"one": TWO["one"], "two": {"offers": [{"name": "cpu", "usdPerHour": 5}]}}
    async with Bench(clouds, placement={"policy": "cheapest"}) as bench:
        wish = {"annotations": {"vk-provider.dev/backends": "one"}}
        bench.bind("db-0", metadata=ORDINAL | wish)
        await bench.until(lambda: bench.phase("db-0") == "Running")
        await bench.stop()
        await bench.start()
        await bench.settle(30)
        bench.delete("db-0", 0)
        await bench.until(lambda: bench.phase("db-0") == "Gone")
        bench.bind("db-0", metadata=ORDINAL | {"uid": uid_of("db-0-again")})
        await bench.until(lambda: bench.phase("db-0") == "Running")
        assert placed(bench, "db-0")["backend"] == "one"
        assert placed(bench, "db-0")["why"].startswith("where its predecessor ran")


async def test_a_backend_that_loses_two_in_a_row_is_left_alone_for_a_while() -> None:
    """The next pod goes elsewhere, and back when the cool-down is over."""
    async with Bench(TWO, placement={"policy": "priority"}) as bench:
        dying = {"fake.vk-provider.dev/vanish-after-seconds": "15"}
        for name in ("a", "b"):
            bench.bind(name, metadata={"annotations": dying})
            await bench.until(partial(is_in, bench, name, "Failed"), 200)
            assert bench.reason(name) == "ProviderLost"
        bench.bind("c")
        await bench.until(lambda: bench.phase("c") == "Running")
        assert placed(bench, "c")["backend"] == "two"
        await bench.settle(60)
        bench.bind("d")
        await bench.until(lambda: bench.phase("d") == "Running")
        assert placed(bench, "d")["backend"] == "one"


PRICED: dict[str, Any] = {"one": {"offers": [{"name": "cpu", "usdPerHour": 36}]}}


async def test_at_a_cap_the_door_closes_and_then_instances_end() -> None:
    """A cent a second and twelve dollars a day: told on the Node before, and on the pod."""
    placement = {"budget": {"usdPerDay": 12}}
    async with Bench(PRICED, placement=placement) as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        await bench.until(lambda: "BudgetNearlySpent" in bench.api.events(), 1200)
        assert "of the node's budget of 12.00 USD/day is spent" in note(bench, "budget")
        await bench.until(lambda: bench.phase("web") == "Failed", 1200)
        assert bench.reason("web") == "Preempted"
        assert "ended to keep the budget" in bench.api.pod("web")["status"]["message"]
        conditions = bench.api.pod("web")["status"]["conditions"]
        assert any(each["type"] == "DisruptionTarget" for each in conditions)
        assert bench.taints() == {"vk-provider.dev/unavailable": "budget"}
        assert "BudgetSpent" in bench.api.events()
        (bill,) = bench.cloud.ledger.bills(bench.cloud.clock())
        assert 0.95 * 12 <= bill.usd <= 12.0
        node = bench.api.get("nodes", NODE, "") or {}
        said = {each["type"]: each["message"] for each in node["status"]["conditions"]}
        assert said["ProviderReady"].startswith("96 % of the node's budget")


async def test_whoever_keeps_instances_at_a_cap_gets_a_closed_door_alone() -> None:
    """``onExceeded: keep``."""
    placement = {"budget": {"usdPerDay": 12, "onExceeded": "keep"}}
    async with Bench(PRICED, placement=placement) as bench:
        bench.bind("web")
        await bench.until(
            lambda: bench.taints().get("vk-provider.dev/unavailable") == "budget", 900
        )
        await bench.settle(1200)
        assert bench.phase("web") == "Running"


async def test_what_is_free_stays_open_when_the_money_is_gone() -> None:
    """One backend costs, the other does not."""
    clouds = {**PRICED, "free": {}}
    placement = {"policy": "priority", "budget": {"usdPerDay": 12}}
    async with Bench(clouds, placement=placement) as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Failed", 1500)
        assert bench.taints() == {}
        bench.bind("next")
        await bench.until(lambda: bench.phase("next") == "Running")
        assert placed(bench, "next")["backend"] == "free"


async def test_a_namespaces_cap_ends_its_own_pods_and_closes_no_door() -> None:
    """Others come and stay."""
    placement = {"budget": {"perNamespace": {"default": {"usdPerDay": 12}}}}
    async with Bench(PRICED, placement=placement) as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Failed", 1500)
        assert "namespace default" in bench.api.pod("web")["status"]["message"]
        bench.bind("next")
        await bench.until(lambda: bench.phase("next") == "Failed", 600)
        assert bench.reason("next") == "OutOfCapacity"
        assert bench.taints() == {}


async def test_a_restart_remembers_what_was_spent() -> None:
    """From the Node's own annotation, also after a kill; a lower budget holds from then on."""
    async with Bench(PRICED, placement={"budget": {"usdPerMonth": 1000}}) as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        await bench.settle(3600)
        assert json.loads(note(bench, "spent"))["rates"] == {"one": {"default": 36.0}}
        await bench.stop()
        await bench.start()
        await bench.settle(30)
        spent = bench.value("budget_spent_usd", node=NODE, namespace="", period="month")
        assert 36 <= spent <= 36.5


DEPLOYED = {
    "labels": {"pod-template-hash": "abc"},
    "ownerReferences": [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web-abc",
            "uid": "rs-1",
            "controller": True,
        }
    ],
}
SLOW: dict[str, Any] = {"slow": {"startAfterSeconds": 700}}


async def test_a_deployment_that_would_be_given_up_too_early_is_told() -> None:
    """Once an hour and Deployment, and only where we may read it."""
    async with Bench(SLOW) as bench:
        bench.api.store.put(
            "deployments",
            {"kind": "Deployment", "metadata": {"namespace": "default", "name": "web"}},
        )
        bench.bind("a", metadata=DEPLOYED)
        await bench.until(partial(is_in, bench, "a", "Running"), 1000)
        assert "ProgressDeadlineTooShort" not in bench.api.events()
        bench.api.allow_reviews = True
        await bench.settle(3700)
        for name in "bc":
            bench.bind(name, metadata=DEPLOYED)
        await bench.settle(5)
        assert bench.api.events().count("ProgressDeadlineTooShort") == 1


async def test_starts_are_remembered_by_the_pods_themselves() -> None:
    """A new process knows what its predecessor's pods took."""
    async with Bench({"slow": {"startAfterSeconds": 90}}) as bench:
        bench.cloud.epoch = START - timedelta(seconds=asyncio.get_running_loop().time())
        bench.bind("a")
        await bench.until(partial(is_in, bench, "a", "Running"), 200)
        await bench.stop()
        await bench.start()
        await bench.settle(1)
        assert bench.node.threshold.experience.starts.median("slow", None) == 90


async def test_a_budget_that_was_lowered_meanwhile_holds_from_the_start() -> None:
    """What was spent is remembered, and the new cap counts."""
    async with Bench(PRICED, placement={"budget": {"usdPerMonth": 1000}}) as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        await bench.settle(1800)
        await bench.stop()
        lower = replace(bench.settings.placement.budget, node=Caps(None, None, 10.0))
        placement = replace(bench.settings.placement, budget=lower)
        bench.settings = replace(bench.settings, placement=placement)
        await bench.start()
        await bench.until(lambda: bench.phase("web") == "Failed", 60)
        assert bench.reason("web") == "Preempted"
        assert bench.cloud.ledger.open_bills(bench.cloud.clock()) == ()


async def test_a_cap_holds_although_lists_fail() -> None:
    """The meter of an instance runs until its end was ordered, whoever can be asked."""
    placement = {"budget": {"usdPerDay": 12}}
    async with Bench(PRICED, placement=placement, door={"outageAfterSeconds": 9999}) as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        await bench.settle(30)
        bench.cloud.script.fail_always("list", UnavailableError("503"))
        await bench.settle(1300)
        (bill,) = bench.cloud.ledger.bills(bench.cloud.clock())
        assert not bill.is_open
        assert 0.95 * 12 <= bill.usd <= 12.0
