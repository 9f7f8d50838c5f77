"""Every action answers exactly once, however its task ends."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.integration.loops.bench import START, Bench, pod
from vk_provider.faults import InvalidTransitionError, OutcomeUnknownError
from vk_provider.kube.writer import StatusWriter
from vk_provider.loops.means import Means
from vk_provider.loops.parking import Parking
from vk_provider.loops.pod_actions import PodActions
from vk_provider.pods import actions as todo
from vk_provider.pods import stimuli as news
from vk_provider.pods.slots import Record
from vk_provider.pods.types import IMPLICIT_OFFER, Candidate, InstanceRef, PodUID
from vk_provider.testing.builders import make_resolved_pod, uid_of

RECORD = Record(PodUID(uid_of("web")), START, pod=pod("web"))
CANDIDATE = Candidate("fake", IMPLICIT_OFFER)
CREATE = todo.CreateInstance(make_resolved_pod("web", cluster_id="home"), CANDIDATE)


def actions_of(bench: Bench) -> PodActions:
    """Hands of their own, beside the node's."""
    node = bench.node
    writer = StatusWriter(bench.client, node.cache)
    nothing = cast("Any", None)
    means = Means(bench.client, writer, node.events, nothing, node.backends, node.kept_logs)
    return PodActions(means, node.threshold, bench.shell)


async def test_a_create_that_is_cancelled_before_its_first_step_is_answered() -> None:
    """The task never ran, and yet nobody waits for its answer for ever."""
    async with Bench() as bench:
        answers: list[news.Stimulus] = []
        actions = actions_of(bench)
        actions.begin(RECORD, CREATE, lambda _, answer: answers.append(answer))
        actions.begin(RECORD, todo.CancelCreate(), lambda _, answer: answers.append(answer))
        await bench.settle(1)
        (answer,) = answers
        assert isinstance(answer, news.CreateFailed)
        assert isinstance(answer.fault, OutcomeUnknownError)
        assert not bench.cloud.calls["create"]
        actions.begin(RECORD, todo.CancelCreate(), lambda _, answer: answers.append(answer))
        assert len(answers) == 1


BUGS: list[tuple[todo.Action, type]] = [
    (todo.Prepare(), news.Prepared),
    (todo.WriteStatus(cast("Any", 0)), news.StatusWritten),
    (todo.CheckOrphan(cast("Any", 0)), news.OrphanChecked),
    (todo.RemovePod(), news.RemovalFailed),
    (todo.DeleteInstance("nowhere", InstanceRef("i"), 0), news.DeleteFailed),
    (todo.DeleteExtra("nowhere", InstanceRef("i")), news.DeleteFailed),
]


@pytest.mark.parametrize(("action", "wanted"), BUGS, ids=lambda each: type(each).__name__)
async def test_a_bug_is_answered_too(action: todo.Action, wanted: type) -> None:
    """What failed in our own code parks the pod for a while; its slot is not filled for ever."""
    async with Bench() as bench:
        answers: list[news.Stimulus] = []
        record = Record(RECORD.uid, START, pod=cast("Any", {"metadata": 0}))
        begin = actions_of(bench).begin
        begin(record, action, lambda _, answer: answers.append(answer))
        await bench.settle(1)
        assert [type(answer) for answer in answers] == [wanted]
        name = type(action).__name__
        assert bench.value("internal_errors_total", node="burst", action=name) == 1


async def test_what_is_parked_waits_ever_longer_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ten seconds, doubling, at most five minutes; one traceback with the story."""
    caplog.set_level(logging.ERROR)
    async with Bench() as bench:
        parking = Parking(bench.shell)
        record = Record(RECORD.uid, START, story=("New: Prepare",))
        pauses = [parking.park(record, "Prepare", ValueError("x")) for _ in range(7)]
        assert pauses == [10, 20, 40, 80, 160, 300, 300]
        assert len(caplog.records) == 1
        assert "New: Prepare" in caplog.text
        parking.forget(record.uid)
        assert parking.park(record, "Decide", InvalidTransitionError("no such state")) == 10
        assert bench.value("invalid_transitions_total", node="burst") == 1


async def test_a_record_that_can_not_be_parks_its_pod(caplog: pytest.LogCaptureFixture) -> None:
    """A rule that raises stops one pod; its neighbour runs."""
    caplog.set_level(logging.CRITICAL)
    async with Bench() as bench:
        bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        broken = Record(PodUID("impossible"), START, pod=pod("b"), verdict=cast("Any", 1))
        bench.node.workers.records[broken.uid] = broken
        bench.node.workers.post(broken.uid, news.Woken())
        await bench.settle(1)
        assert bench.value("invalid_transitions_total", node="burst") == 1
        bench.bind("next")
        await bench.until(lambda: bench.phase("next") == "Running")


async def test_news_that_can_not_be_taken_in_parks_its_pod(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The list that brought it goes on to the others, and so do the next ones."""
    caplog.set_level(logging.CRITICAL)
    async with Bench() as bench:
        uid = bench.bind("web")
        await bench.until(lambda: bench.phase("web") == "Running")
        records = bench.node.workers.records
        records[uid] = replace(records[uid], deleted_at=cast("Any", "long ago"))
        await bench.settle(30)
        assert bench.value("internal_errors_total", node="burst", action="Absorb") > 1
        bench.bind("next")
        await bench.until(lambda: bench.phase("next") == "Running")


async def test_a_task_without_an_audience_logs_its_bug(caplog: pytest.LogCaptureFixture) -> None:
    """And one that hangs is cut at the end of its time."""

    async def fails() -> None:
        raise ZeroDivisionError("a bug")

    async with Bench() as bench:
        failing = bench.shell.spawn(fails(), "the one that fails")
        await bench.settle(0.1)
        assert failing.done()
        assert "the one that fails" in caplog.text
        hanging = bench.shell.spawn(bench.settle(1000), "the one that hangs")
        await bench.shell.drain(5)
        assert hanging.cancelled()
        assert not bench.shell.tasks
