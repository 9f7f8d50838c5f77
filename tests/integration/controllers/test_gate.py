"""The gate's controller over an API server: what it writes, when, and what it survives."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.integration.controllers.bench import NODE, QUICK, GateBench
from tests.integration.controllers.fake_prometheus import FakePrometheus
from tests.integration.loops.memory_api import MemoryApi
from vk_provider.bursting import names
from vk_provider.bursting.gate import dead_man
from vk_provider.bursting.gate_state import Gate, GateReason, render
from vk_provider.faults import UnavailableError

pytestmark = pytest.mark.looptime


async def opened(bench: GateBench) -> None:
    """Four pods found no place, the gate opened, and they went out."""
    await bench.until(lambda: bench.gate() == "hold")
    for number in range(4):
        bench.pod(f"p{number}")
    await bench.until(lambda: bench.gate() is None)
    for number in range(4):
        bench.pod(f"p{number}", NODE)


async def test_a_node_without_a_gate_is_held() -> None:
    """Home first; all other taints stay."""
    async with GateBench() as bench:
        await bench.until(lambda: bench.gate() == "hold")

        keys = [taint["key"] for taint in bench.node()["spec"]["taints"]]
        assert keys == [names.PROVIDER_TAINT, names.GATE_TAINT]
        state = bench.known()
        assert (state.value, state.reason) == (Gate.HOLD, GateReason.STARTED)


async def test_a_waiting_pod_opens_within_ten_seconds() -> None:
    """Taint and state in one PATCH; one Event, one count."""
    async with GateBench() as bench:
        await bench.until(lambda: bench.gate() == "hold")
        bench.api.calls.clear()
        bench.pod("a")
        took = await bench.until(lambda: bench.gate() is None)
        await bench.until(lambda: "GateOpened" in bench.api.events())

        assert 5 <= took < 10
        patches = [body for verb, _, body in bench.api.calls if verb == "PATCH"]
        assert set(patches[0]["metadata"]["annotations"]) == {names.GATE_STATE}
        assert "taints" in patches[0]["spec"]
        moved = {"node": NODE, "from": "hold", "to": "open", "reason": "PodsWaiting"}
        assert bench.value("gate_transitions_total", **moved) == 1
        assert bench.value("gate_state", node=NODE, state="open") == 1


async def test_nothing_is_written_while_nothing_changes() -> None:
    """Five quiet minutes."""
    async with GateBench() as bench:
        await bench.until(lambda: bench.gate() == "hold")
        await asyncio.sleep(30)
        bench.api.calls.clear()
        await asyncio.sleep(300)

        assert {verb for verb, _, _ in bench.api.calls} == {"GET"}
        assert bench.api.count("GET") == bench.api.count("GET", "/apis/kueue.x-k8s.io") <= 5


async def test_pods_come_home_in_steps() -> None:
    """The taint says return, and hold while two are on their way; the heart beats meanwhile."""
    async with GateBench() as bench:
        await opened(bench)
        await bench.until(lambda: bench.gate() == "return")
        assert names.GATE_HEARTBEAT in bench.node()["metadata"]["annotations"]
        first = bench.node()["metadata"]["annotations"][names.GATE_HEARTBEAT]
        bench.remove("p0", "p1")
        bench.pod("q0", "home-0", ready=False)
        bench.pod("q1", "home-0", ready=False)
        await bench.until(lambda: bench.gate() == "hold")
        state = bench.known()
        assert (state.value, state.is_paused) == (Gate.RETURN, True)
        assert bench.value("homecomings_in_flight", node=NODE) == 2
        await asyncio.sleep(6)
        assert bench.node()["metadata"]["annotations"][names.GATE_HEARTBEAT] != first

        bench.pod("q0", "home-0")
        bench.pod("q1", "home-0")
        await bench.until(lambda: bench.gate() == "return")
        assert bench.value("homecomings_total", node=NODE, outcome="home") == 2
        bench.remove("p2", "p3")
        await bench.until(lambda: bench.known().value is Gate.HOLD)


async def test_pods_outside_are_the_first_to_go() -> None:
    """Once; a cost that somebody took away again stays away."""
    async with GateBench() as bench:
        await opened(bench)
        cost = names.DELETION_COST

        def costs() -> list[str | None]:
            pods = [bench.api.get("pods", f"p{n}", "web") or {} for n in range(4)]
            return [(pod["metadata"].get("annotations") or {}).get(cost) for pod in pods]

        await bench.until(lambda: costs() == ["-100"] * 4)
        bench.pod("p0", NODE)
        await asyncio.sleep(20)
        assert costs() == [None, "-100", "-100", "-100"]


async def test_a_cost_that_is_refused_is_tried_again() -> None:
    """And one of a pod that is gone is forgotten."""
    async with GateBench() as bench:
        await bench.until(lambda: bench.gate() == "hold")
        bench.api.refuse("PATCH", "/pods/p0", 403)
        bench.api.refuse("PATCH", "/pods/p1", 404)
        bench.pod("p0", NODE)
        bench.pod("p1", NODE)
        await bench.until(lambda: bench.api.count("PATCH", "/pods/p0") == 2)

        assert bench.api.count("PATCH", "/pods/p1") == 1


async def test_a_new_leader_goes_on_where_the_old_one_stood() -> None:
    """In every state, from the annotation."""
    api = MemoryApi()
    async with GateBench(api) as bench:
        await opened(bench)
        before = bench.known()
    async with GateBench(api) as bench:
        await asyncio.sleep(3)
        after = bench.known()
        assert (after.value, after.since) == (Gate.OPEN, before.since)
        await bench.until(lambda: bench.gate() == "return")
        since = bench.known().since
    async with GateBench(api) as bench:
        await asyncio.sleep(3)
        assert (bench.gate(), bench.known().since) == ("return", since)


async def test_who_may_not_act_writes_nothing() -> None:
    """Another replica may lead."""
    bench = GateBench()
    bench.may_act = False
    async with bench:
        bench.pod("a", NODE)
        await asyncio.sleep(60)

        assert bench.gate() is None
        assert bench.api.count("PATCH") == 0


async def test_a_gate_that_could_not_be_written_has_not_moved() -> None:
    """It is decided anew, and written when the API server is back."""
    async with GateBench() as bench:
        await bench.until(lambda: bench.gate() == "hold")
        bench.api.refuse("PATCH", f"/nodes/{NODE}", *[403] * 3)
        bench.pod("a")
        await bench.until(lambda: bench.gate() is None)

        assert bench.api.count("PATCH", f"/nodes/{NODE}") >= 4


async def test_somebody_else_who_edits_taints_loses_none() -> None:
    """A conflict is read again; one that never ends is given up for now."""
    async with GateBench() as bench:
        await bench.until(lambda: bench.gate() == "hold")
        bench.api.refuse("PATCH", f"/nodes/{NODE}", *[409] * 7)
        bench.pod("a")
        await bench.until(lambda: bench.gate() is None)


async def test_a_taint_that_somebody_took_away_is_put_back() -> None:
    """The gate is ours to move."""
    async with GateBench() as bench:
        await bench.until(lambda: bench.gate() == "hold")
        node = bench.node()
        provider = [t for t in node["spec"]["taints"] if t["key"] == names.PROVIDER_TAINT]
        bench.api.store.put("nodes", {**node, "spec": {"taints": provider}})
        await bench.until(lambda: bench.gate() == "hold", seconds=10)


async def test_the_node_s_own_word_stands() -> None:
    """It ended a return that it took for unwatched."""
    async with GateBench() as bench:
        await opened(bench)
        await bench.until(lambda: bench.gate() == "return")
        held = dead_man(bench.state(), bench.now())
        node = bench.node()
        annotations = {**node["metadata"]["annotations"], names.GATE_STATE: render(held)}
        bench.api.store.put(
            "nodes", {**node, "metadata": {**node["metadata"], "annotations": annotations}}
        )
        await bench.until(lambda: bench.gate() == "hold", seconds=10)

        state = bench.known()
        assert state.reason is GateReason.CONTROLLER_SILENT


async def test_a_node_that_goes_is_forgotten_and_taken_up_again() -> None:
    """Its numbers too, or they would alert for ever. Registered anew, it starts held."""
    async with GateBench() as bench:
        await bench.until(lambda: bench.gate() == "hold")
        await bench.until(lambda: bench.value("gate_state", node=NODE, state="hold") == 1)
        bench.api.store.remove("nodes", "", NODE)
        await asyncio.sleep(6)
        assert bench.controller.states() == {}
        assert bench.value("gate_state", node=NODE, state="hold") is None
        assert bench.value("burst_pods", node=NODE) is None
        bench.virtual()
        await bench.until(lambda: bench.gate() == "hold")


async def test_a_frozen_gate_is_told_once() -> None:
    """An Event and a metric."""
    async with GateBench(limits=replace(QUICK, max_transitions=3)) as bench:
        await opened(bench)
        await bench.until(lambda: "GateFrozen" in bench.api.events())

        assert bench.value("gate_frozen", node=NODE) == 1
        assert bench.gate() == "hold"


async def test_an_outage_of_the_api_server_changes_nothing() -> None:
    """Taints persist; afterwards everything goes on."""
    async with GateBench() as bench:
        await opened(bench)
        await bench.until(lambda: bench.gate() == "return")
        bench.api.go()
        await asyncio.sleep(150)
        assert bench.gate() == "return"
        bench.api.come_back()
        await bench.until(lambda: bench.known().value is Gate.HOLD)
        assert bench.known().reason is GateReason.SIGNALS_IN_DOUBT


@pytest.mark.parametrize("fault", ["silent", "empty"])
async def test_prometheus_can_only_say_no(fault: str) -> None:
    """Without its word the gate opens, and neither closes nor returns."""
    prometheus = FakePrometheus()
    async with GateBench(prometheus=prometheus.reader) as bench:
        if fault == "silent":
            prometheus.fault = UnavailableError("away")
        else:
            prometheus.answers["nodes"] = None
        await opened(bench)
        await asyncio.sleep(240)
        assert bench.gate() is None
        assert bench.value("gate_signals_doubted") == 1
        prometheus.heal()
        await bench.until(lambda: bench.gate() == "return")
        assert prometheus.asked["slots 1 nvidia_com_gpu"] > 0


async def test_the_dearer_node_comes_home_first() -> None:
    """One at a time; the other one waits at hold until the first is empty."""
    async with GateBench(nodes=("cheap", "dear")) as bench:
        for name, usd in (("cheap", "1.00"), ("dear", "9.00")):
            price = {names.USD_PER_HOUR: usd, names.RUNNING_INSTANCES: "1"}
            bench.virtual(name, **price)
            bench.pod(f"on-{name}", name)
        await bench.until(lambda: bench.gate("dear") == "return")
        await asyncio.sleep(60)
        assert (bench.gate("cheap"), bench.gate("dear")) == ("hold", "return")

        bench.remove("on-dear")
        bench.pod("q", "home-0")
        await bench.until(lambda: bench.gate("cheap") == "return")
        assert bench.gate("dear") == "hold"


async def test_an_open_gate_beside_keeps_everybody_outside() -> None:
    """Whoever is evicted would leave through it."""
    async with GateBench(nodes=("a", "b"), limits=replace(QUICK, close_after=90)) as bench:
        bench.pod("on-a", "a")
        await bench.until(lambda: bench.gate("a") == "hold" and bench.gate("b") == "hold")
        bench.pod("waits")
        await bench.until(lambda: bench.gate("b") is None)
        bench.pod("waits", "b")
        await bench.until(lambda: "return" in (bench.gate("a"), bench.gate("b")), 300)
        assert None not in (bench.gate("a"), bench.gate("b"))


async def test_a_person_may_keep_the_gate_where_it_is() -> None:
    """By an annotation, until it is taken away."""
    async with GateBench() as bench:
        await opened(bench)
        node = bench.node()
        annotations = node["metadata"]["annotations"]
        held = {**annotations, names.GATE_OVERRIDE: "hold"}
        bench.api.store.put(
            "nodes", {**node, "metadata": {**node["metadata"], "annotations": held}}
        )
        await bench.until(lambda: bench.gate() == "hold", seconds=3)
        await asyncio.sleep(120)
        assert (bench.gate(), bench.known().reason) == ("hold", GateReason.OVERRIDDEN)

        node = bench.node()
        del node["metadata"]["annotations"][names.GATE_OVERRIDE]
        bench.api.store.put("nodes", node)
        await bench.until(lambda: bench.gate() == "return")
