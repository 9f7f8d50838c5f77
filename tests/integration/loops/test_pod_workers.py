"""Pods from their binding to their end, by the real loops."""

from __future__ import annotations

from tests.integration.loops.bench import Bench


async def test_a_pod_runs_and_goes() -> None:
    """There and back: one create, Running, a graceful delete, nothing left."""
    async with Bench() as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        assert bench.cloud.calls["create"] == 1
        bench.delete("web")
        await bench.until(lambda: bench.phase("web") == "Gone")
        assert not bench.cloud.instances_of(bench.stamp("web").pod_uid)
        await bench.until(lambda: not bench.node.workers.records)
