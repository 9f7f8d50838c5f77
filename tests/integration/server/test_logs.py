"""kubectl logs, from the query to the last byte."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.integration.server.bench import Caller, SilentBackend, eventually, line, make_pod
from tests.integration.server.conftest import Stage
from vk_provider import log
from vk_provider.faults import InstanceNotFoundError, NotSupportedError, UnavailableError
from vk_provider.pods.types import InstanceRef, LogLine, LogOptions

LOGS = "/containerLogs/ns/p/c"


async def test_the_whole_log(stage: Stage, admin: Caller) -> None:
    """The right container's, as plain text."""
    stage.backend.lines = {"c": [line(0, "one"), line(1, "two")], "d": [line(0, "other")]}
    async with admin.session.get(admin.base + LOGS) as response:
        assert response.content_type == "text/plain"
        assert await response.text() == "one\ntwo\n"
    assert await admin.get("/containerLogs/ns/p/d") == (200, "other\n")


async def test_an_empty_log_is_empty(admin: Caller) -> None:
    """A container that printed nothing."""
    assert await admin.get(LOGS) == (200, "")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tailLines=1", "three\n"),
        ("tail=2", "two\nthree\n"),
        ("tailLines=0", ""),
        ("limitBytes=5", "one\nt"),
        ("tailLines=2&limitBytes=3", "two"),
        ("sinceTime=2026-01-01T00:00:01Z", "two\nthree\n"),
        ("timestamps=true&tailLines=1", "2026-01-01T00:00:02.000000000Z three\n"),
    ],
)
async def test_options_hold_for_a_backend_that_honours_none(
    stage: Stage, admin: Caller, query: str, expected: str
) -> None:
    """Since, tail, timestamps, limit."""
    stage.backend.lines["c"] = [line(0, "one"), line(1, "two"), line(2, "three")]
    assert await admin.get(f"{LOGS}?{query}") == (200, expected)


@pytest.mark.parametrize(
    ("query", "status"), [("tailLines=x", 400), ("tailLines=-1", 422), ("limitBytes=0", 422)]
)
async def test_bad_queries(admin: Caller, query: str, status: int) -> None:
    """With the name of the parameter."""
    answer = await admin.get(f"{LOGS}?{query}")
    assert answer[0] == status
    assert query.split("=", maxsplit=1)[0] in answer[1]


async def test_unknown_pod_and_container(admin: Caller) -> None:
    """404 in a kubelet's words."""
    pod = await admin.get("/containerLogs/ns/x/c")
    assert pod == (404, 'pod "x" does not exist')
    container = await admin.get("/containerLogs/ns/p/x")
    assert container == (404, 'container "x" not found in pod "p"')


async def test_a_container_that_waits(stage: Stage, admin: Caller) -> None:
    """The sentence kubectl prints."""
    pod = make_pod({"waiting": {"reason": "ContainerCreating"}})
    assert stage.pods.served is not None
    stage.pods.served = replace(stage.pods.served, pod=pod)
    text = 'container "c" in pod "p" is waiting to start: ContainerCreating'
    assert await admin.get(LOGS) == (400, text)


async def test_no_previous_run(admin: Caller) -> None:
    """--previous of a container that never restarted."""
    text = 'previous terminated container "c" in pod "p" not found'
    assert await admin.get(LOGS + "?previous=true") == (400, text)


async def test_a_backend_without_logs(stage: Stage, admin: Caller) -> None:
    """A sentence, not an empty answer."""
    assert stage.pods.served is not None
    stage.pods.served = replace(stage.pods.served, provider=SilentBackend())
    status, text = await admin.get(LOGS)
    assert status == 501
    assert "does not offer container logs" in text


async def test_kept_lines_outlive_the_instance(stage: Stage, admin: Caller) -> None:
    """Also with options, and a follow of them ends."""
    assert stage.pods.served is not None
    kept = {"c": (line(0, "last"), line(1, "words"))}
    pod = make_pod({"terminated": {"exitCode": 0}})
    stage.pods.served = replace(stage.pods.served, pod=pod, ref=None, kept_lines=kept)
    assert await admin.get(LOGS) == (200, "last\nwords\n")
    assert await admin.get(LOGS + "?follow=true&tailLines=1") == (200, "words\n")


class Vanishing(SilentBackend):
    """Its instance goes while its log is asked for; the log was kept a moment before."""

    def __init__(self, stage: Stage, **kept: tuple[LogLine, ...]) -> None:
        self.stage = stage
        self.kept = kept

    async def read_logs(
        self, ref: InstanceRef, container: str, options: LogOptions
    ) -> AsyncIterator[LogLine]:
        assert self.stage.pods.served is not None
        self.stage.pods.served = replace(self.stage.pods.served, ref=None, kept_lines=self.kept)
        raise InstanceNotFoundError("no i-1")
        yield


async def test_a_log_that_is_kept_while_it_is_asked_for_is_found(
    stage: Stage, admin: Caller
) -> None:
    """Its instance ends at any moment; one of another container is no help."""
    served = stage.pods.served
    assert served is not None
    vanishing = Vanishing(stage, c=(line(0, "words"),))
    stage.pods.served = replace(served, provider=vanishing)
    assert await admin.get(LOGS) == (200, "words\n")

    stage.pods.served = replace(served, provider=Vanishing(stage, d=(line(0, "other"),)))
    assert (await admin.get(LOGS))[0] == 400


async def test_nothing_kept_is_said(stage: Stage, admin: Caller) -> None:
    """The instance is gone, and its log with it."""
    assert stage.pods.served is not None
    pod = make_pod({"terminated": {"exitCode": 0}})
    stage.pods.served = replace(stage.pods.served, pod=pod, ref=None)
    status, text = await admin.get(LOGS)
    assert status == 400
    assert text.startswith('container "c" in pod "p" is not available: its instance is gone')


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (InstanceNotFoundError("no i-1"), 400),
        (UnavailableError("away"), 400),
        (NotSupportedError("no logs for this machine"), 501),
    ],
)
async def test_faults_become_a_sentence(
    stage: Stage, admin: Caller, fault: Exception, status: int
) -> None:
    """With what the backend said."""
    stage.backend.fault = fault
    answer = await admin.get(LOGS)
    assert answer[0] == status
    assert str(fault) in answer[1]
    assert stage.backend.open == 0


async def test_faults_show_no_secret(stage: Stage, admin: Caller) -> None:
    """Even if a provider was careless."""
    log.redact("rpa_0123456789")
    stage.backend.fault = UnavailableError("refused rpa_0123456789")
    assert "0123456789" not in (await admin.get(LOGS))[1]


async def test_a_log_that_breaks_off_says_so(stage: Stage, admin: Caller) -> None:
    """Too late for a status, so as a last line, after what was read."""
    stage.backend.lines["c"] = [line(0, "one")]
    stage.backend.fault = UnavailableError("away")
    text = "one\nvk-provider: the log breaks off: away\n"
    assert await admin.get(LOGS) == (200, text)


async def test_the_header_comes_before_the_first_line(stage: Stage, admin: Caller) -> None:
    """A quiet container does not look hung, and each line comes when it is printed."""
    async with admin.session.get(admin.base + LOGS + "?follow=true") as response:
        assert response.status == 200
        for second in range(3):
            stage.backend.lines["c"].append(line(second, f"n{second}"))
            assert await asyncio.wait_for(response.content.readline(), 5) == f"n{second}\n".encode()
        stage.backend.ended.set()
        assert await asyncio.wait_for(response.content.read(), 5) == b""


@pytest.mark.parametrize("tail", [0, 1, 5])
async def test_a_followed_tail_has_no_gap_and_no_double(
    stage: Stage, admin: Caller, tail: int
) -> None:
    """The last old lines, then every new one, from a backend that always sends all."""
    stage.backend.lines["c"] = [line(0, "a"), line(1, "b"), line(1, "c")]
    path = f"{admin.base}{LOGS}?follow=true&tailLines={tail}"
    async with admin.session.get(path) as response:
        await eventually(lambda: len(stage.backend.asked) == 2)
        stage.backend.lines["c"].append(line(2, "new"))
        stage.backend.ended.set()
        text = (await response.read()).decode()
    old = ["a", "b", "c"][3 - min(tail, 3) :]
    assert text.split() == [*old, "new"]


async def test_a_client_that_leaves_frees_the_backend(stage: Stage, admin: Caller) -> None:
    """kubectl logs -f, then Ctrl-C."""
    response = await admin.session.get(admin.base + LOGS + "?follow=true")
    await eventually(lambda: stage.backend.open == 1)
    response.close()
    await eventually(lambda: stage.backend.open == 0)


async def test_a_client_that_leaves_early_frees_the_backend(stage: Stage, admin: Caller) -> None:
    """Before the header was sent."""
    asking = asyncio.create_task(admin.get(LOGS + "?follow=true"))
    await eventually(lambda: stage.backend.open == 1)
    asking.cancel()
    await asyncio.wait({asking})
    await eventually(lambda: stage.backend.open == 0)


@pytest.mark.parametrize("change", ["gone", "replaced", "ended", "kept"])
async def test_a_follow_ends_even_if_the_backend_does_not(
    stage: Stage, admin: Caller, change: str
) -> None:
    """A backend may forget to end its stream; the pod says that it is over."""
    served = stage.pods.served
    assert served is not None
    asking = asyncio.create_task(admin.get(LOGS + "?follow=true"))
    await eventually(lambda: stage.backend.open == 1)
    stage.pods.served = {
        "gone": None,
        "replaced": replace(served, pod=make_pod(uid="u-2")),
        "ended": replace(served, pod=make_pod({"terminated": {"exitCode": 0}})),
        "kept": replace(served, kept_lines={"c": ()}),
    }[change]
    assert await asyncio.wait_for(asking, 10) == (200, "")
    assert stage.backend.open == 0


async def test_a_slow_client_slows_the_backend(stage: Stage, admin: Caller) -> None:
    """Nothing is read ahead: 64 MB are offered, only what fits the sockets is taken."""
    stage.backend.lines["c"] = [line(0, "x" * 65536)] * 1024
    response = await admin.session.get(admin.base + LOGS + "?follow=true")
    before = -1
    while before != stage.backend.read:
        before = stage.backend.read
        await asyncio.sleep(0.2)
    assert 0 < stage.backend.read < 512
    response.close()
    await eventually(lambda: stage.backend.open == 0)


@pytest.mark.parametrize("query", ["", "?tailLines=15000", "?follow=true", "?timestamps=true"])
async def test_many_lines_come_whole_and_in_order(stage: Stage, admin: Caller, query: str) -> None:
    """Batches have borders, a log has none: empty lines and large ones between many."""
    texts = [("", "x" * 100_000, str(number))[min(number % 1000, 2)] for number in range(20_000)]
    stage.backend.lines["c"] = [line(0, text) for text in texts]
    stage.backend.ended.set()

    status, body = await admin.get(LOGS + query)

    found = [text.rpartition(" ")[2] for text in body.removesuffix("\n").split("\n")]
    assert (status, found) == (200, texts[-15_000:] if "tail" in query else texts)
    assert stage.backend.open == 0


async def test_the_limit_ends_a_follow(stage: Stage, admin: Caller) -> None:
    """Cut exactly there, and the backend is let go."""
    stage.backend.lines["c"] = [line(0, "abcdef")]
    assert await admin.get(LOGS + "?follow=true&limitBytes=3") == (200, "abc")
    await eventually(lambda: stage.backend.open == 0)


async def test_a_closing_server_ends_its_streams(stage: Stage, admin: Caller) -> None:
    """A clean stop leaves no stream to the backend behind."""
    response = await admin.session.get(admin.base + LOGS + "?follow=true")
    await eventually(lambda: stage.backend.open == 1)
    await stage.server.close()
    await eventually(lambda: stage.backend.open == 0)
    response.close()
