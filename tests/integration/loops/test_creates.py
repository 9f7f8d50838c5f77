"""Create calls that fail, time out or are cut: nothing is lost, nothing doubled."""

from __future__ import annotations

from tests.integration.loops.bench import Bench
from vk_provider.faults import (
    DeniedError,
    OutcomeUnknownError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)


async def test_a_wish_for_patience_is_honoured() -> None:
    """429 with Retry-After: the second try comes when the backend asked for it, not before."""
    async with Bench() as bench:
        bench.cloud.script.fail_next("create", ThrottledError("slow down", 7.0))
        bench.bind("web")
        took = await bench.until(lambda: bench.phase("web") == "Running")
        assert 7.0 <= took < 9.0
        assert bench.cloud.calls["create"] == 2


async def test_refused_connections_are_tried_three_times() -> None:
    """Then the next offer's turn comes; here there is none, and the pod may go home."""
    async with Bench() as bench:
        bench.cloud.script.fail_always("create", UnavailableError("connection refused"))
        bench.bind("web")
        took = await bench.until(lambda: bench.phase("web") == "Failed")
        assert bench.cloud.calls["create"] == 3
        assert took < 30.0
        assert bench.reason("web") == "OutOfCapacity"


async def test_a_wish_longer_than_our_patience_sends_the_pod_elsewhere() -> None:
    """Retry-After of a minute: one try, and the next backend runs the pod at once."""
    async with Bench({"first": {}, "second": {}}, placement={"policy": "priority"}) as bench:
        bench.clouds["first"].script.fail_always("create", ThrottledError("come back", 60.0))
        bench.bind("web")
        took = await bench.until(lambda: bench.phase("web") == "Running")
        assert took < 5.0
        assert bench.clouds["first"].calls["create"] == 1
        assert bench.clouds["second"].calls["create"] == 1


async def test_a_create_without_an_answer_is_not_repeated() -> None:
    """The time-out leaves the outcome unknown; the list finds the instance that was made."""
    async with Bench() as bench:
        bench.cloud.script.hold_next_create()
        bench.bind("web")
        await bench.cloud.script.create_held()
        await bench.until(lambda: bench.phase("web") == "Running", 200)
        assert bench.cloud.calls["create"] == 1
        assert not bench.cloud.billed_twice()


async def test_an_unknown_outcome_waits_for_lists_before_the_second_create() -> None:
    """5xx after the request was sent, nothing made: two complete lists must agree on that."""
    async with Bench({"fake": {"listLagSeconds": 5}}) as bench:
        bench.cloud.fail_next_create(OutcomeUnknownError("502"))
        bench.bind("web")
        await bench.until(lambda: bench.cloud.calls["create"] == 1)
        lists = bench.cloud.calls["list"]
        await bench.until(lambda: bench.cloud.calls["create"] == 2)
        assert bench.cloud.calls["list"] >= lists + 2
        await bench.until(lambda: bench.phase("web") == "Running")


async def test_an_unknown_outcome_that_made_one_keeps_it() -> None:
    """5xx after the instance was made: it is found by its stamp and used."""
    async with Bench({"fake": {"listLagSeconds": 5}}) as bench:
        bench.cloud.fail_next_create(OutcomeUnknownError("502"), created=True)
        uid = bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        assert bench.cloud.calls["create"] == 1
        assert len(bench.cloud.instances_of(uid)) == 1


async def test_deleting_a_pod_cancels_its_create() -> None:
    """What the create had made by then is found by its stamp and ended before the pod leaves."""
    async with Bench() as bench:
        bench.cloud.script.hold_next_create()
        uid = bench.bind("web")
        await bench.cloud.script.create_held()
        bench.delete("web")
        took = await bench.until(lambda: bench.phase("web") == "Gone")
        assert took < 60.0
        assert not bench.cloud.instances_of(uid)


async def test_a_refusal_is_final() -> None:
    """A request the backend will never take ends the pod, with the backend's words."""
    async with Bench() as bench:
        bench.cloud.script.fail_always("create", RejectedError("no such image"))
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Failed")
        assert bench.reason("web") == "Rejected"
        assert "no such image" in bench.api.pod("web")["status"]["message"]
        assert bench.cloud.calls["create"] == 1
        assert "Rejected" in bench.api.events()


async def test_a_denial_closes_the_backend() -> None:
    """Credentials refused: the door says so and ProviderReady is False; Ready stays True."""
    async with Bench() as bench:
        bench.cloud.script.fail_always("create", DeniedError("key revoked"))
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Failed")
        assert bench.taints() == {"vk-provider.dev/unavailable": "denied"}
        node = bench.api.get("nodes", "burst", "") or {}
        conditions = {c["type"]: c["status"] for c in node["status"]["conditions"]}
        assert (conditions["ProviderReady"], conditions["Ready"]) == ("False", "True")
        assert bench.value("door_state", node="burst", state="denied") == 1
