"""The dead man's switch in virtual time: a return that nobody watches becomes hold."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.integration.loops.bench import NODE, Bench
from vk_provider.bursting import names
from vk_provider.bursting.gate_state import Gate, GateReason, GateState, read, render
from vk_provider.loops.dead_man import DeadMan

DEAD_AFTER = 60.0


def mark(bench: Bench, taint: str | None, **annotations: str) -> None:
    """What the gate's controller writes."""
    node = bench.api.get("nodes", NODE, "") or {}
    others = [t for t in node["spec"].get("taints") or [] if t["key"] != names.GATE_TAINT]
    ours = [{"key": names.GATE_TAINT, "value": taint, "effect": "NoSchedule"}] if taint else []
    metadata = node["metadata"]
    known: dict[str, Any] = {**(metadata.get("annotations") or {}), **annotations}
    body = {
        **node,
        "metadata": {**metadata, "annotations": known},
        "spec": {**node["spec"], "taints": [*others, *ours]},
    }
    bench.api.store.put("nodes", body)


def watched(bench: Bench) -> asyncio.Task[None]:
    """The switch of the bench's node, running."""
    man = DeadMan(bench.client, lambda: bench.heartbeat.node, DEAD_AFTER, bench.shell)
    return asyncio.ensure_future(man.run())


async def stopped(task: asyncio.Task[None]) -> None:
    """End it."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_return_without_a_sign_of_life_is_held() -> None:
    """Taint and state together; other taints stay."""
    async with Bench() as bench:
        task = watched(bench)
        state = GateState(Gate.RETURN, bench.shell.clock.now())
        mark(bench, "return", **{names.GATE_STATE: render(state), names.GATE_HEARTBEAT: "1"})
        await bench.settle(DEAD_AFTER - 5)
        assert bench.taints()[names.GATE_TAINT] == "return"
        await bench.until(lambda: bench.taints()[names.GATE_TAINT] == "hold", 30)

        node = bench.api.get("nodes", NODE, "") or {}
        written = read(node["metadata"]["annotations"][names.GATE_STATE])
        assert written is not None
        assert (written.value, written.reason) == (Gate.HOLD, GateReason.CONTROLLER_SILENT)
        await stopped(task)


async def test_a_heart_that_beats_is_left_alone() -> None:
    """However old its time says it is: only that it changes counts."""
    async with Bench() as bench:
        task = watched(bench)
        for beat in range(20):
            mark(bench, "return", **{names.GATE_HEARTBEAT: f"1970-01-01T00:00:{beat:02d}Z"})
            await bench.settle(20)
        assert bench.taints()[names.GATE_TAINT] == "return"
        await stopped(task)


async def test_only_a_return_is_watched() -> None:
    """Hold and open move nobody."""
    async with Bench() as bench:
        task = watched(bench)
        for taint in ("hold", None):
            mark(bench, taint)
            await bench.settle(200)
            assert bench.taints().get(names.GATE_TAINT) == taint
        await stopped(task)


async def test_a_refused_hold_is_tried_again() -> None:
    """A conflict means that somebody is alive, perhaps."""
    async with Bench() as bench:
        task = watched(bench)
        mark(bench, "return")
        bench.api.refuse("PATCH", f"/nodes/{NODE}", 409)
        await bench.until(lambda: bench.taints()[names.GATE_TAINT] == "hold", 120)
        await stopped(task)
