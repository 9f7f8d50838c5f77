"""What lists show, and what they don't: absence, outages, orphans, doubles, strangers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.integration.loops.bench import CLUSTER, Bench, pod
from vk_provider.faults import (
    DeniedError,
    GarbledAnswerError,
    OutcomeUnknownError,
    UnavailableError,
)
from vk_provider.pods.types import InstancePhase, InstanceRef, Observation, PodUID, Stamp
from vk_provider.testing.builders import uid_of
from vk_provider.testing.fake import FakeProvider


async def running(bench: Bench, *names: str) -> list[InstanceRef]:
    """Pods that run, and their instances."""
    for name in names:
        bench.bind(name)
    await bench.until(lambda: all(bench.phase(name) == "Running" for name in names))
    await bench.until(lambda: all(bench.record(name).observation for name in names))
    uids = [PodUID(uid_of(name)) for name in names]
    cloud = next(iter(bench.clouds.values()))
    return [cloud.instances_of(uid)[0].ref for uid in uids]


async def test_a_suspiciously_empty_list_changes_nothing_at_first() -> None:
    """An account that looks empty though three pods run there is disbelieved for a while."""
    async with Bench() as bench:
        await running(bench, "a", "b", "c")
        kept = dict(bench.cloud.instances)
        bench.cloud.instances.clear()
        await bench.settle(45)
        assert {bench.phase(name) for name in "abc"} == {"Running"}
        assert bench.value(
            "backend_list_failures_total", node="burst", backend="fake", reason="SuspiciouslyEmpty"
        )
        bench.cloud.instances.update(kept)
        await bench.settle(60)
        assert {bench.phase(name) for name in "abc"} == {"Running"}


async def test_an_empty_list_is_believed_in_the_end() -> None:
    """Six in a row, then absences count as they always do."""
    async with Bench() as bench:
        await running(bench, "a", "b", "c")
        bench.cloud.instances.clear()
        await bench.until(lambda: bench.phase("a") == "Failed", 300)
        assert bench.reason("a") == "ProviderLost"


async def test_one_lost_instance_fails_its_pod_after_two_lists() -> None:
    """Confirmed absence: the pod is Failed with DisruptionTarget, its sibling untouched."""
    async with Bench() as bench:
        ref, _ = await running(bench, "a", "b")
        bench.cloud.lose(ref)
        lists = bench.cloud.calls["list"]
        await bench.until(lambda: bench.phase("a") == "Failed")
        assert bench.cloud.calls["list"] >= lists + 2
        conditions = {c["type"]: c for c in bench.api.pod("a")["status"]["conditions"]}
        assert conditions["DisruptionTarget"]["reason"] == "TerminationByKubelet"
        assert bench.phase("b") == "Running"


class Withdrawing(FakeProvider):
    """Somebody else ends its instances, and on dead machines: none of them ever goes."""

    async def list_instances(self) -> Sequence[Observation]:
        leaving = InstancePhase.DELETING
        return [replace(each, phase=leaving) for each in await super().list_instances()]

    async def delete_instance(self, ref: InstanceRef, grace_seconds: int) -> None:
        return None


async def test_an_instance_that_never_goes_does_not_keep_its_pod() -> None:
    """Its grace, a minute, and the wait for confirmation: then its owner makes another (C012)."""
    async with Bench() as bench:
        await running(bench, "web")
        bench.node.backends["fake"].provider = Withdrawing(bench.cloud, "home")
        took = await bench.until(lambda: bench.phase("web") == "Failed", 500)
        assert bench.reason("web") == "ProviderLost"
        assert took > 30 + 60 + 300
        await bench.until(
            lambda: bench.value("unconfirmed_deletions", node="burst", backend="fake")
        )


async def test_a_young_instance_is_never_declared_lost() -> None:
    """The backend shows it half a minute late; lists without it mean nothing until then."""
    async with Bench({"fake": {"listLagSeconds": 30, "startAfterSeconds": 40}}) as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        assert bench.cloud.calls["create"] == 1
        assert not bench.value("failed_verdicts_total", node="burst", reason="ProviderLost")


async def test_failing_lists_close_the_door_and_change_no_pod() -> None:
    """An outage of an API is no death of a pod; when lists work again the door opens."""
    async with Bench() as bench:
        await running(bench, "web")
        bench.cloud.script.fail_always("list", UnavailableError("503"))
        await bench.until(lambda: bench.taints().get("vk-provider.dev/unavailable") == "outage")
        await bench.settle(600)
        assert bench.phase("web") == "Running"
        assert bench.value("backend_up", node="burst", backend="fake") == 0
        assert bench.shell.stuck() is None
        bench.cloud.script.heal()
        await bench.until(lambda: not bench.taints())
        assert bench.phase("web") == "Running"
        bench.bind("next")
        await bench.until(lambda: bench.phase("next") == "Running")


async def test_a_refused_list_closes_the_door_at_the_second_time() -> None:
    """A wrong key heals by no waiting: nobody need try a pod to find out."""
    async with Bench() as bench:
        await running(bench, "web")
        bench.cloud.script.fail_always("list", DeniedError("the key is wrong"))
        took = await bench.until(lambda: bench.taints().get("vk-provider.dev/unavailable"))
        assert 10 < took < 30
        assert bench.phase("web") == "Running"
        bench.cloud.script.heal()
        await bench.until(lambda: not bench.taints())


async def test_a_garbled_list_is_counted_as_such() -> None:
    """HTML instead of JSON: unchanged pods and a metric."""
    async with Bench() as bench:
        await running(bench, "web")
        bench.cloud.script.fail_always("list", GarbledAnswerError("<html>"))
        await bench.settle(30)
        assert bench.phase("web") == "Running"
        assert bench.value("garbled_observations_total", node="burst", backend="fake") >= 2


async def test_a_garbled_instance_leaves_its_pod_alone() -> None:
    """One unreadable state in a good list."""
    async with Bench() as bench:
        (ref,) = await running(bench, "web")
        bench.cloud.garble(ref)
        await bench.settle(60)
        assert bench.phase("web") == "Running"
        labels = {"node": "burst", "backend": "fake", "phase": "Unknown"}
        assert bench.value("instances", **labels) == 1


async def test_an_orphan_goes_on_the_second_sweep_after_a_question() -> None:
    """Never on the first sight, and not before the API server was asked for its pod by name."""
    bench = Bench()
    await bench.start()
    orphan = bench.cloud.add(bench.stamp("gone"))
    await bench.until(lambda: bench.cloud.calls["list"] == 1)
    await bench.settle(2)
    assert not bench.cloud.calls["delete"]
    assert not bench.api.count("GET", "/pods/gone")
    await bench.until(lambda: orphan.deleted_at is not None)
    assert bench.api.count("GET", "/pods/gone") == 1
    assert bench.cloud.calls["list"] >= 2
    await bench.until(lambda: not bench.node.workers.records)
    assert bench.value("orphans_deleted_total", node="burst", backend="fake") == 1
    await bench.stop()


async def test_pushes_do_not_count_as_sweeps_of_an_orphan() -> None:
    """However often the backend mentions it between two lists."""
    async with Bench() as bench:
        await bench.until(lambda: bench.cloud.calls["list"] == 1)
        orphan = bench.cloud.add(bench.stamp("gone"))
        for _ in range(20):
            bench.cloud.write_log(orphan.ref, "main", b"I am here")
            await bench.settle(0.1)
        assert not bench.api.count("GET", "/pods/gone")


async def test_an_owner_that_exists_protects_its_instance() -> None:
    """No watch shows the pod here (it is bound elsewhere), but it is there, with that UID."""
    async with Bench() as bench:
        bench.api.store.put("pods", pod("elsewhere", nodeName="other"))
        orphan = bench.cloud.add(bench.stamp("elsewhere"))
        await bench.settle(120)
        assert orphan.deleted_at is None


async def test_an_instance_of_a_recreated_name_is_an_orphan() -> None:
    """The name is taken by another UID: the old pod is gone for good."""
    async with Bench() as bench:
        bench.api.store.put("pods", pod("web", nodeName="other", metadata={"uid": "another"}))
        orphan = bench.cloud.add(bench.stamp("web"))
        await bench.until(lambda: orphan.deleted_at is not None)


async def test_an_api_server_that_does_not_answer_protects_everything() -> None:
    """Unknown is not absent."""
    async with Bench() as bench:
        await bench.until(lambda: bench.cloud.calls["list"] == 1)
        bench.api.refuse("GET", "/pods/gone", *[403] * 100)
        orphan = bench.cloud.add(bench.stamp("gone"))
        await bench.settle(120)
        assert orphan.deleted_at is None
        assert bench.api.count("GET", "/pods/gone") >= 1


async def test_no_sweep_before_the_pods_are_known() -> None:
    """While the API server refuses the first list of pods, no backend is even looked at."""
    bench = Bench()
    bench.api.refuse("GET", "/pods", *[500] * 1000)
    await bench.start()
    orphan = bench.cloud.add(bench.stamp("gone"))
    await bench.settle(120)
    assert orphan.deleted_at is None
    assert not bench.cloud.calls["list"]
    bench.api.refusals.clear()
    await bench.until(lambda: orphan.deleted_at is not None)
    await bench.stop()


async def test_instances_of_others_are_never_touched() -> None:
    """A sibling node's, another cluster's and a stranger's; the sibling's are counted."""
    async with Bench() as bench:
        sibling = bench.cloud.add(bench.stamp("x", node="sibling"))
        others = [
            bench.cloud.add(bench.stamp("y", cluster="other")),
            bench.cloud.add(None),
        ]
        await bench.settle(120)
        assert all(each.deleted_at is None for each in [sibling, *others])
        labels = {"node": "burst", "backend": "fake", "owner": "sibling"}
        assert bench.value("instances_elsewhere", **labels) == 1
        bench.cloud.lose(sibling.ref)
        await bench.settle(20)
        assert bench.value("instances_elsewhere", **labels) == 0


async def test_a_double_is_ended_and_the_known_one_stays() -> None:
    """At most one live instance per pod."""
    async with Bench() as bench:
        (ref,) = await running(bench, "web")
        double = bench.cloud.add(bench.stamp("web"))
        await bench.until(lambda: double.deleted_at is not None)
        assert [each.ref for each in bench.cloud.instances_of(bench.stamp("web").pod_uid)] == [ref]
        assert bench.phase("web") == "Running"


async def test_a_double_whose_end_is_refused_is_ended_later() -> None:
    """The order is given again until it is taken."""
    async with Bench() as bench:
        await running(bench, "web")
        bench.cloud.script.fail_next("delete", UnavailableError("503"), times=2)
        double = bench.cloud.add(bench.stamp("web"))
        await bench.until(lambda: double.deleted_at is not None)
        assert bench.cloud.calls["delete"] == 3


class Buggy(FakeProvider):
    """A provider whose list and watch fail in a way that no provider should."""

    async def list_instances(self) -> Sequence[Observation]:
        raise ZeroDivisionError("a bug")

    async def watch_instances(self) -> AsyncIterator[Observation]:
        for seen in await self.list_instances():
            yield seen


async def test_a_bug_in_a_provider_is_an_outage_of_it() -> None:
    """The loops go on, and the pods are as they were."""
    async with Bench() as bench:
        await running(bench, "web")
        backend = bench.node.backends["fake"]
        good = backend.provider
        backend.provider = Buggy(bench.cloud, "home")
        await bench.settle(120)
        assert bench.taints() == {"vk-provider.dev/unavailable": "outage"}
        assert bench.phase("web") == "Running"
        backend.provider = good
        await bench.until(lambda: not bench.taints())


class Nonsense(FakeProvider):
    """Its lists and its watch hold what is no observation."""

    async def list_instances(self) -> Sequence[Observation]:
        return [cast("Any", None)]

    async def watch_instances(self) -> AsyncIterator[Observation]:
        yield cast("Any", None)


async def test_nonsense_in_a_list_is_an_outage_of_its_provider(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The node goes on, with its other pods and backends; one traceback tells."""
    async with Bench() as bench:
        await running(bench, "web")
        bench.node.backends["fake"].provider = Nonsense(bench.cloud, "home")
        await bench.settle(120)
        assert bench.taints() == {"vk-provider.dev/unavailable": "outage"}
        assert bench.phase("web") == "Running"
        assert caplog.text.count("backend fake: the list failed\n") == 1


class BrokenWatch(FakeProvider):
    """Its watch breaks at once, every time."""

    opened = 0

    async def watch_instances(self) -> AsyncIterator[Observation]:
        self.opened += 1
        raise UnavailableError("503")
        yield  # an iterator all the same


async def test_a_watch_that_breaks_at_once_is_opened_ever_more_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Every minute in the end; said once, since the lists go on."""
    async with Bench() as bench:
        provider = BrokenWatch(bench.cloud, "home")
        bench.node.backends["fake"].provider = provider
        await bench.settle(400)
        assert 10 < provider.opened < 20
        assert caplog.text.count("its watch broke: 503") == 1


async def test_pods_of_a_silent_backend_are_given_up_only_on_request() -> None:
    """failAfterBackendLostSeconds: after the silence and the wait for confirmation, Failed."""
    async with Bench(failAfterBackendLostSeconds=120, confirmDeadlineSeconds=60) as bench:
        await running(bench, "web")
        bench.cloud.script.fail_always("list", UnavailableError("503"))
        bench.cloud.script.fail_always("delete", UnavailableError("503"))
        await bench.settle(100)
        assert bench.phase("web") == "Running"
        await bench.until(lambda: bench.phase("web") == "Failed", 300)
        assert bench.reason("web") == "ProviderLost"
        bench.cloud.script.heal()
        await bench.until(lambda: not bench.cloud.instances_of(bench.stamp("web").pod_uid))


async def test_an_instance_that_never_starts_is_replaced_on_request() -> None:
    """startDeadlineSeconds: it is ended, so that nobody pays for a pull that hangs."""
    async with Bench({"fake": {"startAfterSeconds": 1e6}}, startDeadlineSeconds=120) as bench:
        bench.bind("web")
        await bench.settle(100)
        assert bench.phase("web") == "Pending"
        await bench.until(lambda: bench.phase("web") == "Failed", 60)
        assert bench.reason("web") == "ProviderLost"
        assert not bench.cloud.instances_of(bench.stamp("web").pod_uid)


async def test_the_node_shows_what_runs_and_what_it_costs() -> None:
    """Instances and spending reach the annotations with the next tick, and cost nothing at rest."""
    offers = [{"name": "cpu", "usdPerHour": 0.5}]
    async with Bench({"fake": {"offers": offers}}) as bench:
        await running(bench, "a", "b")
        await bench.settle(25)
        node = bench.api.get("nodes", "burst", "") or {}
        assert "2 instances, 1.00 USD/h" in str(node["metadata"]["annotations"])
        patches = bench.api.count("PATCH")
        await bench.settle(120)
        assert bench.api.count("PATCH") == patches


async def test_an_ordered_end_that_is_still_listed_is_counted() -> None:
    """Deletions nobody confirmed yet are money: a gauge shows them."""
    async with Bench({"fake": {"listLagSeconds": 40, "endedIsFree": False}}) as bench:
        await running(bench, "web")
        bench.delete("web", 0)
        labels = {"node": "burst", "backend": "fake"}
        await bench.until(lambda: bench.value("unconfirmed_deletions", **labels) == 1)
        await bench.until(lambda: bench.phase("web") == "Gone", 200)
        await bench.until(lambda: bench.value("unconfirmed_deletions", **labels) == 0)


STRAY = Stamp(CLUSTER, "", "", "", PodUID(""))


async def test_a_stray_keeps_nobody_from_going_and_no_lost_instance_hidden(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Instances that are known by their ids are not it."""
    async with Bench() as bench:
        await running(bench, "leaves")
        (ref,) = await running(bench, "lost")
        stray = bench.cloud.add(STRAY)
        bench.delete("leaves")
        await bench.until(lambda: bench.phase("leaves") == "Gone")
        bench.cloud.instances.pop(ref.id)
        await bench.until(lambda: bench.phase("lost") == "Failed")
        assert stray.deleted_at is None
        assert caplog.text.count(stray.ref.id) == 1


async def test_no_second_instance_is_made_while_a_stray_may_be_the_first() -> None:
    """A create of unknown outcome waits until a person has ended the stray."""
    async with Bench() as bench:
        stray = bench.cloud.add(STRAY)
        bench.cloud.fail_next_create(OutcomeUnknownError("502"))
        bench.bind("web")
        await bench.settle(120)
        assert bench.cloud.calls["create"] == 1
        bench.cloud.instances.pop(stray.ref.id)
        await bench.until(lambda: bench.phase("web") == "Running")
