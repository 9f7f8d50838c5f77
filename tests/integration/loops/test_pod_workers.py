"""Pods from their binding to their end, by the real loops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.integration.loops.bench import Bench
from tests.integration.loops.memory_api import MemoryApi
from tests.support.model_apiserver import ModelStore
from vk_provider.faults import UnavailableError
from vk_provider.pods.types import Explanation, InstanceRef, LogLine, LogOptions, Offer, ResolvedPod
from vk_provider.testing.fake import FakeProvider


async def test_a_pod_runs_and_goes() -> None:
    """There and back: one create, two PATCHes to Running, no GET, a graceful end, nothing left."""
    async with Bench() as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        assert bench.cloud.calls["create"] == 1
        assert bench.api.count("PATCH", "/pods/web/status") == 2
        assert not bench.api.count("GET", "/pods/web")
        assert bench.value("pods", node="burst", phase="Running") == 1
        assert bench.value("pod_start_seconds_count", node="burst") == 1
        assert bench.value("status_patches_total", node="burst", outcome="written") == 2
        bench.delete("web")
        await bench.until(lambda: bench.phase("web") == "Gone")
        assert not bench.cloud.instances_of(bench.stamp("web").pod_uid)
        await bench.until(lambda: not bench.node.workers.records)
        assert bench.value("pods", node="burst", phase="Running") == 0


async def test_a_force_deleted_pod_is_paid_off() -> None:
    """Its object is gone; its instance goes too, even if the first order is refused."""
    async with Bench() as bench:
        uid = bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        bench.cloud.script.fail_next("delete", UnavailableError("503"))
        bench.force_delete("web")
        await bench.until(lambda: not bench.cloud.instances_of(uid))
        await bench.until(lambda: not bench.node.workers.records)


async def test_many_pods_that_go_at_once_hold_up_nobody() -> None:
    """A list confirms all of them, and a pod that comes meanwhile runs as ever (C041)."""
    async with Bench({"fake": {"createSeconds": 5}}) as bench:
        names = [f"web-{number}" for number in range(80)]
        for name in names:
            bench.bind(name)
        await bench.until(lambda: bench.api.phases()["Running"] == len(names), 20)
        bench.api.delay = 0.2
        for name in names:
            bench.delete(name)
        bench.bind("new")
        await bench.until(lambda: bench.phase("new") == "Running", 12)
        await bench.until(lambda: all(bench.phase(name) == "Gone" for name in names), 12)


async def test_the_last_words_of_a_container_are_kept() -> None:
    """They become its termination message, and stay readable while the pod exists."""
    async with Bench({"fake": {"endedIsFree": False}}) as bench:
        uid = bench.bind("web", restartPolicy="Never")
        await bench.until(lambda: bench.phase("web") == "Running")
        (instance,) = bench.cloud.instances_of(uid)
        bench.cloud.write_log(instance.ref, "main", b"out of cheese")
        bench.cloud.end(instance.ref, exit_code=3)
        await bench.until(lambda: bench.phase("web") == "Failed")
        state = bench.api.pod("web")["status"]["containerStatuses"][0]["state"]["terminated"]
        assert "out of cheese" in state["message"]
        assert state["exitCode"] == 3
        assert b"out of cheese" in bench.node.kept_logs.of(uid)["main"][-1].text
        bench.delete("web", 0)
        await bench.until(lambda: not bench.node.workers.records)
        assert not bench.node.kept_logs.of(uid)


class HangingLogs(FakeProvider):
    """Its logs never end and never come."""

    async def read_logs(
        self, ref: InstanceRef, container: str, options: LogOptions
    ) -> AsyncIterator[LogLine]:
        await asyncio.Event().wait()
        async for line in super().read_logs(ref, container, options):
            yield line


async def test_the_order_that_stops_billing_waits_five_seconds_at_most_for_words() -> None:
    """Logs are a courtesy, money is not."""
    async with Bench({"fake": {"endedIsFree": False}}) as bench:
        uid = bench.bind("web", restartPolicy="Never")
        await bench.until(lambda: bench.phase("web") == "Running")
        bench.node.backends["fake"].provider = HangingLogs(bench.cloud, "home")
        (instance,) = bench.cloud.instances_of(uid)
        bench.cloud.end(instance.ref)
        took = await bench.until(lambda: not bench.cloud.instances_of(uid))
        assert took < 16.0  # one tick until it is seen, then five seconds


class BuggyLogs(FakeProvider):
    """Its logs can't be read, in a way that no provider should have."""

    async def read_logs(
        self, ref: InstanceRef, container: str, options: LogOptions
    ) -> AsyncIterator[LogLine]:
        raise ZeroDivisionError("a bug")
        yield  # an iterator all the same


async def test_a_bug_in_reading_logs_does_not_keep_an_instance_billing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The order is given, and the bug is told."""
    caplog.set_level(logging.CRITICAL)
    async with Bench({"fake": {"endedIsFree": False}}) as bench:
        uid = bench.bind("web", restartPolicy="Never")
        await bench.until(lambda: bench.phase("web") == "Running")
        bench.node.backends["fake"].provider = BuggyLogs(bench.cloud, "home")
        (instance,) = bench.cloud.instances_of(uid)
        bench.cloud.end(instance.ref)
        assert await bench.until(lambda: not bench.cloud.instances_of(uid)) < 12.0
        await bench.until(lambda: bench.phase("web") == "Succeeded")


class Buggy(FakeProvider):
    """Fails on pods named so, in one of its methods, in a way that no provider should."""

    broken = "explain"

    def explain(self, pod: ResolvedPod, offer: Offer) -> Explanation:
        self._maybe("explain", pod.stamp.pod_name)
        return super().explain(pod, offer)

    async def create_instance(self, pod: ResolvedPod, offer: Offer) -> InstanceRef:
        self._maybe("create", pod.stamp.pod_name)
        return await super().create_instance(pod, offer)

    async def delete_instance(self, ref: InstanceRef, grace_seconds: int) -> None:
        stamp = self.backend.find(ref).stamp
        self._maybe("delete", stamp.pod_name if stamp else "")
        await super().delete_instance(ref, grace_seconds)

    def _maybe(self, method: str, pod_name: str) -> None:
        if method == self.broken and pod_name == "buggy":
            raise ZeroDivisionError("a bug")


async def test_a_bug_in_a_create_leaves_its_outcome_unknown() -> None:
    """Nothing is made twice; after three such answers the offer is given up."""
    async with Bench() as bench:
        provider = Buggy(bench.cloud, "home")
        provider.broken = "create"
        bench.node.backends["fake"].provider = provider
        bench.bind("buggy")
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        await bench.until(lambda: bench.phase("buggy") == "Failed", 400)
        assert bench.reason("buggy") == "OutOfCapacity"
        assert bench.value("internal_errors_total", node="burst", action="CreateInstance") == 3


async def test_a_bug_in_a_translation_parks_that_pod_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Logged in full once, counted, tried again later; the pod next to it runs."""
    caplog.set_level(logging.ERROR)
    async with Bench() as bench:
        provider = Buggy(bench.cloud, "home")
        bench.node.backends["fake"].provider = provider
        bench.bind("buggy")
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        await bench.settle(100)
        assert bench.phase("buggy") == "Pending"
        assert bench.waiting("buggy")["reason"] == "ProviderUnavailable"
        assert sum(r.exc_info is not None for r in caplog.records) == 1
        provider.broken = "nothing"
        await bench.until(lambda: bench.phase("buggy") == "Running", 400)
        assert 3 <= bench.value("internal_errors_total", node="burst", action="Prepare") <= 5


async def test_a_bug_in_a_delete_is_tried_again() -> None:
    """The instance is not forgotten."""
    async with Bench() as bench:
        uid = bench.bind("buggy")
        await bench.until(lambda: bench.phase("buggy") == "Running")
        provider = Buggy(bench.cloud, "home")
        provider.broken = "delete"
        bench.node.backends["fake"].provider = provider
        bench.delete("buggy", 0)
        await bench.settle(60)
        assert bench.cloud.instances_of(uid)
        provider.broken = "nothing"
        await bench.until(lambda: bench.phase("buggy") == "Gone", 400)


async def test_a_restart_at_any_moment_makes_no_second_instance() -> None:
    """Cut while the create's answer is on its way: the next process finds what was made."""
    bench = Bench()
    await bench.start()
    bench.cloud.script.hold_next_create()
    uid = bench.bind("web")
    await bench.cloud.script.create_held()
    await bench.stop()
    bench.cloud.script.release()
    await bench.start()
    await bench.until(lambda: bench.phase("web") == "Running")
    assert bench.cloud.calls["create"] == 1
    assert len(bench.cloud.instances_of(uid)) == 1
    await bench.stop()


async def test_nothing_is_begun_or_written_without_leadership() -> None:
    """Fencing in mid-flight: the answer of a create comes when another may lead."""
    async with Bench({"fake": {"startAfterSeconds": 5}}) as bench:
        bench.cloud.script.hold_next_create()
        bench.bind("web")
        await bench.cloud.script.create_held()
        await bench.settle(0.1)
        bench.may_act = False
        calls = len(bench.api.calls)
        bench.cloud.script.release()
        bench.bind("next")
        await bench.settle(60)
        assert not [call for call in bench.api.calls[calls:] if call[0] != "GET"]
        assert bench.cloud.calls["create"] == 1
        bench.may_act = True
        await bench.until(lambda: bench.phase("web") == "Running")


async def test_an_order_that_waits_is_not_given_after_leadership_ended() -> None:
    """A retry of a create, and a delete whose logs are still being read."""
    async with Bench() as bench:
        bench.cloud.script.fail_always("create", UnavailableError("refused"))
        bench.bind("web")
        await bench.until(lambda: bench.cloud.calls["create"] == 1)
        bench.may_act = False
        await bench.settle(60)
        assert bench.cloud.calls["create"] == 1


async def test_ten_minutes_without_an_api_server() -> None:
    """What ended meanwhile is ended at the backend too, so that billing stops; nothing is lost,
    and everything is written when it is back."""
    async with Bench({"fake": {"endedIsFree": False}}) as bench:
        ended, lives = bench.bind("ends", restartPolicy="Never"), bench.bind("lives")
        await bench.until(lambda: bench.api.phases()["Running"] == 2)
        bench.api.go()
        (instance,) = bench.cloud.instances_of(ended)
        bench.cloud.end(instance.ref, exit_code=0)
        await bench.settle(600)
        assert not bench.cloud.instances_of(ended)
        assert bench.shell.stuck() is None
        bench.api.come_back()
        await bench.until(lambda: bench.phase("ends") == "Succeeded")
        assert bench.phase("lives") == "Running"
        assert len(bench.cloud.instances_of(lives)) == 1
        bench.bind("new")
        await bench.until(lambda: bench.phase("new") == "Running")


async def test_a_pod_on_a_backend_that_is_configured_no_longer_is_reported() -> None:
    """It is neither made elsewhere nor failed: an Event says what a person must do."""
    async with Bench({"old": {}}) as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        api = bench.api
    async with Bench({"new": {}}, api=api) as bench:
        await bench.settle(120)
        assert bench.phase("web") == "Running"
        assert not bench.cloud.calls["create"]
        assert "FailedKillPod" in api.events()


async def test_it_may_be_given_up_on_request() -> None:
    """With failAfterBackendLostSeconds its replacement runs on what is configured now."""
    async with Bench({"old": {}}) as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        api = bench.api
    spec = {"failAfterBackendLostSeconds": 60, "confirmDeadlineSeconds": 30}
    async with Bench({"new": {}}, api=api, **spec) as bench:
        await bench.until(lambda: bench.phase("web") == "Failed", 300)
        assert bench.reason("web") == "ProviderLost"


async def test_a_status_that_is_refused_is_written_later() -> None:
    """And said once in the log, however often it is tried."""
    async with Bench() as bench:
        bench.api.refuse("PATCH", "/pods/web/status", *[422] * 3)
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        assert bench.value("status_patches_total", node="burst", outcome="failed") == 3


class Forgetful(ModelStore):
    """An API server whose pods have a generation that their status may not speak of."""

    def put(self, resource: str, obj: dict[str, Any]) -> dict[str, Any]:
        if resource == "pods":
            status = {**obj.get("status", {})}
            status.pop("observedGeneration", None)
            conditions = [{**each} for each in status.get("conditions", [])]
            for condition in conditions:
                condition.pop("observedGeneration", None)
            metadata = {**obj["metadata"], "generation": 1}
            obj = {**obj, "metadata": metadata, "status": {**status, "conditions": conditions}}
        return super().put(resource, obj)


async def test_a_field_that_the_api_server_drops_is_not_sent_for_ever() -> None:
    """Its feature is off: a pod at rest costs nothing all the same, and what others write over
    its status is put right."""
    async with Bench(api=MemoryApi(store=Forgetful())) as bench:
        bench.bind("web")
        await bench.settle(60)
        assert bench.phase("web") == "Running"
        assert bench.api.count("PATCH", "/pods/web/status") <= 3
        known = bench.api.pod("web")
        bench.api.store.put("pods", {**known, "status": {**known["status"], "phase": "Pending"}})
        await bench.until(lambda: bench.phase("web") == "Running")
        bench.delete("web")
        await bench.until(lambda: bench.phase("web") == "Gone")


async def test_a_removal_that_is_refused_is_tried_again() -> None:
    """The pod leaves in the end."""
    async with Bench() as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        bench.api.refuse("DELETE", "/pods/web", 403)
        bench.delete("web", 0)
        await bench.until(lambda: bench.phase("web") == "Gone")
