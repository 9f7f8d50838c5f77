"""Two backends of a node may share one account: each list then shows what the other one made."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.integration.loops.bench import Bench

_accounts = count()


def shared(**more: Any) -> dict[str, dict[str, Any]]:
    """Two price classes of one account, as in the RunPod sample."""
    account = {"service": f"account-{next(_accounts)}", "idsAreGlobal": True, **more}
    return {"secure": dict(account), "community": dict(account)}


async def test_what_one_backend_made_is_no_double_in_the_others_list() -> None:
    """The same id is the same instance: it is ended by nobody, and counted once."""
    async with Bench(shared()) as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        await bench.settle(120)

        cloud = bench.clouds["secure"]
        assert bench.phase("web") == "Running"
        assert cloud.calls["delete"] == 0
        counted = [bench.relist(name).census.instances for name in ("secure", "community")]
        assert sorted(counted) == [0, 1]


async def test_a_restart_adopts_it_once() -> None:
    """Whichever list comes first."""
    async with Bench(shared()) as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        await bench.stop()
        await bench.start()
        await bench.settle(120)

        cloud = bench.clouds["secure"]
        assert bench.phase("web") == "Running"
        assert (cloud.calls["create"], cloud.calls["delete"]) == (1, 0)


async def test_it_is_ended_when_its_pod_goes() -> None:
    """Once, by the backend that it belongs to, and nothing is left."""
    async with Bench(shared()) as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        bench.delete("web")
        await bench.until(lambda: bench.phase("web") == "Gone")

        cloud = bench.clouds["secure"]
        assert cloud.calls["delete"] == 1
        assert not [bill for bill in cloud.bills() if bill.is_open]
