"""Logs, sessions, ports and stats of real processes, beyond what the contract asks."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.integration.process.conftest import Bench, shell
from tests.support.eventually import eventually
from vk_provider.faults import InstanceNotFoundError, NotSupportedError, UnavailableError
from vk_provider.pods.types import InstancePhase, LogLine, LogOptions
from vk_provider.streams import AttachRequest, ExecRequest
from vk_provider.testing.builders import make_container
from vk_provider.testing.contract_client import ScriptedClient
from vk_provider.testing.process_config import ProcessConfig

FOREVER = "while :; do sleep 0.1; done"


async def test_logs_hold_both_streams_and_the_last_line_without_a_newline(bench: Bench) -> None:
    """Everything that was written, in order, with times that do not go back."""
    ref = await bench.sh("echo one; sleep 0.1; echo two >&2; sleep 0.1; printf three")
    await bench.reaches(ref, InstancePhase.ENDED)

    lines = await bench.log_lines(ref)

    assert [each.text for each in lines] == [b"one", b"two", b"three"]
    assert [each.timestamp for each in lines] == sorted(each.timestamp for each in lines)


async def test_followed_logs_lose_and_double_nothing(bench: Bench) -> None:
    """However fast they come."""
    ref = await bench.sh("i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done")

    followed = await bench.logs(ref, follow=True)

    assert followed == [b"%d" % number for number in range(20000)]


async def test_logs_are_bounded_and_keep_the_end(bench: Bench) -> None:
    """The oldest lines go; tail still finds the last ones."""
    bench.service.config = replace(bench.service.config, log_bytes=1 << 16)
    ref = await bench.sh("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")
    await bench.reaches(ref, InstancePhase.ENDED)

    kept = await bench.logs(ref)

    assert kept == [b"line %d" % number for number in range(20000 - len(kept), 20000)]
    assert 500 < len(kept) < 5000
    assert await bench.logs(ref, tail_lines=2) == kept[-2:]
    assert await bench.logs(ref, tail_lines=0) == []
    assert await bench.logs(ref, since=(await bench.log_lines(ref))[-1].timestamp)


async def test_a_reader_that_was_overtaken_goes_on_with_what_is_kept(bench: Bench) -> None:
    """A followed log that was rotated twice skips; it does not break."""
    bench.service.config = replace(bench.service.config, log_bytes=1 << 14)
    script = "echo first; until test -e go; do sleep 0.05; done; seq 20000; echo last"
    ref = await bench.sh(script)
    lines = bench.provider.read_logs(ref, "main", LogOptions(follow=True))
    first: LogLine = await anext(lines)
    await bench.run(ref, "touch go")
    await bench.reaches(ref, InstancePhase.ENDED)

    rest = [line.text async for line in lines]

    assert first.text == b"first"
    assert rest[-1] == b"last"
    assert len(rest) < 20000


async def test_a_reader_may_be_overtaken_while_it_reads_what_was_there(bench: Bench) -> None:
    """All that it was to read first may be gone by then."""
    bench.service.config = replace(bench.service.config, log_bytes=1 << 20)
    script = "seq 20000; touch done; until test -e go; do sleep 0.05; done; seq 200000"
    ref = await bench.sh(script)
    await bench.run(ref, "until test -e done; do sleep 0.05; done")
    lines = bench.provider.read_logs(ref, "main", LogOptions(follow=True))
    await anext(lines)
    await bench.run(ref, "touch go")
    await bench.reaches(ref, InstancePhase.ENDED)

    rest = [line.text async for line in lines]

    assert rest[-1] == b"200000"
    assert len(rest) < 200_000


async def test_a_line_without_an_end_is_cut(bench: Bench) -> None:
    """So that it is held neither in memory nor back."""
    ref = await bench.sh("head -c 3000000 /dev/zero | tr '\\0' x")
    await bench.reaches(ref, InstancePhase.ENDED)

    pieces = await bench.logs(ref)

    assert [len(each) for each in pieces] == [1 << 20, 1 << 20, 3000000 - (2 << 20)]


async def test_logs_of_a_former_life_do_not_exist(bench: Bench) -> None:
    """Nothing is ever restarted."""
    ref = await bench.sh("exit 0")

    with pytest.raises(NotSupportedError, match="never restarts"):
        await bench.logs(ref, previous=True)
    with pytest.raises(InstanceNotFoundError, match="nobody"):
        await bench.logs(ref, "nobody")


async def test_logs_of_what_has_not_started_are_empty(bench: Bench) -> None:
    """It has said nothing yet."""
    ref = await bench.create(shell("main", "exit 0"), initContainers=[shell("one", FOREVER)])

    assert await bench.logs(ref) == []


async def test_a_command_left_behind_does_not_hold_an_exec(bench: Bench) -> None:
    """It ends with its own process, though a child still holds its output; the child lives on."""
    ref = await bench.sh(FOREVER)

    client = await bench.run(ref, "sleep 1000 & echo $!")

    assert (await bench.run(ref, f"kill -0 {int(client.stdout)}")).stderr == b""


async def test_a_terminal_ends_with_its_shell(bench: Bench) -> None:
    """With everything that was written to it."""
    ref = await bench.sh(FOREVER)

    client = await bench.run(ref, "tty; seq 2000", tty=True)

    assert client.stdout.endswith(b"1999\r\n2000\r\n")
    assert re.match(rb"/dev/pts/\d+\r\n1\r\n", bytes(client.stdout))


async def test_only_the_streams_that_were_asked_for_are_sent(bench: Bench) -> None:
    """The others go nowhere and hold nothing up."""
    ref, client = await bench.sh(FOREVER), ScriptedClient()
    request = ExecRequest("main", ("sh", "-c", "seq 100000; echo e >&2"), stdout=False)

    await bench.provider.exec(ref, request, client)

    assert (bytes(client.stdout), bytes(client.stderr)) == (b"", b"e\n")


async def test_an_exec_in_a_container_that_ends_is_killed(bench: Bench) -> None:
    """As everything in it."""
    ref, client = await bench.sh("until test -e go; do sleep 0.05; done"), ScriptedClient()
    request = ExecRequest("main", ("sh", "-c", "echo up; touch go; sleep 1000"))

    assert await bench.provider.exec(ref, request, client) == 137
    with pytest.raises(InstanceNotFoundError, match="not running"):
        await bench.provider.exec(ref, request, client)


async def test_a_client_that_fails_ends_its_command(bench: Bench) -> None:
    """Its fault comes through, and the command is gone."""

    class Broken(ScriptedClient):
        async def write_stdout(self, chunk: bytes) -> None:
            raise ConnectionResetError("the client is gone")

    ref = await bench.sh(FOREVER)
    request = ExecRequest("main", ("sh", "-c", f"echo up; {FOREVER}"))

    with pytest.raises(ConnectionResetError, match="the client is gone"):
        await bench.provider.exec(ref, request, Broken())

    await eventually(lambda: not bench.service.find(ref).guests.running, "its end")


async def test_an_exec_ends_with_its_instance(bench: Bench) -> None:
    """Also when its keeper ends in the middle."""
    ref, client = await bench.sh(FOREVER), ScriptedClient()
    request = ExecRequest("main", ("sh", "-c", f"echo up; {FOREVER}"))
    command = asyncio.create_task(bench.provider.exec(ref, request, client))
    await client.stdout_has(b"up")

    await bench.provider.delete_instance(ref, 0)

    assert await command == 137


async def test_a_slow_attacher_slows_the_container(bench: Bench) -> None:
    """Nothing is dropped; once it goes on, or leaves, so does the container."""
    step = "head -c 65536 /dev/zero; i=$((i+1)); echo $i > progress"
    script = f"until test -e go; do sleep 0.02; done; i=0; while [ $i -lt 128 ]; do {step}; done"
    ref, client = await bench.sh(script), ScriptedClient()
    client.stall()
    attached = asyncio.create_task(bench.provider.attach(ref, AttachRequest("main"), client))
    await bench.run(ref, "touch go; until test -s progress; do :; done; sleep 0.5")

    halted = int((await bench.run(ref, "cat progress")).stdout)
    client.go_on()

    assert await attached == 0
    assert halted < 20
    assert len(client.stdout) == 128 * 65536


async def test_an_attacher_that_leaves_lets_the_container_go_on(bench: Bench) -> None:
    """Even if it was the one who held everything up."""
    script = "until test -e go; do sleep 0.02; done; head -c 8388608 /dev/zero"
    ref, client = await bench.sh(script), ScriptedClient()
    client.stall()
    attached = asyncio.create_task(bench.provider.attach(ref, AttachRequest("main"), client))
    await bench.run(ref, "touch go; sleep 0.2")

    attached.cancel()
    with suppress(asyncio.CancelledError):
        await attached

    await bench.reaches(ref, InstancePhase.ENDED)


async def test_stdin_stays_open_for_the_next_client(bench: Bench) -> None:
    """Without ``stdinOnce`` nobody's end of input is the container's."""
    ref = await bench.create(make_container(command=["cat"], stdin=True))
    await bench.reaches(ref, InstancePhase.RUNNING)

    for words in (b"one\n", b"two\n"):
        client = ScriptedClient(words)
        request = AttachRequest("main", stdin=True)
        attached = asyncio.create_task(bench.provider.attach(ref, request, client))
        await client.stdout_has(words)
        attached.cancel()
        with suppress(asyncio.CancelledError):
            await attached

    assert bench.seen(ref).phase is InstancePhase.RUNNING


async def test_mapped_ports_are_free_ports_under_the_containers_names(bench: Bench) -> None:
    """Two pods can serve the same port, and PORT tells each which one is its own."""
    bench.service.config = replace(bench.service.config, map_ports=True)
    serve = (
        "import os, socket\n"
        "server = socket.create_server(('127.0.0.1', int(os.environ['PORT'])))\n"
        "while True: server.accept()[0].sendall(os.environ['PORT_8080'].encode())\n"
    )
    container = make_container(
        command=[sys.executable, "-c", serve], ports=[{"containerPort": 8080}]
    )
    refs = [await bench.create(container) for _ in range(2)]

    answers = []
    for ref in refs:
        await bench.reaches(ref, InstancePhase.RUNNING)
        connection = None
        while connection is None:
            with suppress(UnavailableError):
                connection = await bench.provider.open_port(ref, 8080)
        answers.append(int(await connection.read()))
        await connection.close()

    assert answers == [bench.service.find(ref).ports[8080] for ref in refs]
    assert len(set(answers)) == 2


async def test_a_refused_connection_reads_as_a_kubelets(bench: Bench) -> None:
    """The port as the user knows it, and why."""
    ref = await bench.sh(FOREVER)

    with pytest.raises(UnavailableError, match=r"localhost:1 .*dial tcp4 .*: connection refused"):
        await bench.provider.open_port(ref, 1)


async def test_stats_count_work_memory_and_files(bench: Bench) -> None:
    """Those of the container's children and of commands beside it included."""
    ref = await bench.sh(f"head -c 3000000 /dev/zero > file; touch done; {FOREVER}")
    await bench.run(ref, "until test -e done; do :; done")
    (before,) = await bench.provider.read_stats()

    await bench.run(ref, "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")

    (after,) = await bench.provider.read_stats()
    (old,), (new,) = before.containers, after.containers
    assert (new.cpu_nanoseconds or 0) > (old.cpu_nanoseconds or 0) + 20_000_000
    assert (new.filesystem_used_bytes or 0) >= 3_000_000
    assert (new.memory_rss_bytes or 0) >= (new.memory_working_set_bytes or 0) > 0
    assert new.started_at == getattr(bench.container(ref).state, "started_at", None)


async def test_ended_containers_use_nothing(bench: Bench, config: ProcessConfig) -> None:
    """There is nothing to measure."""
    ref = await bench.sh("exit 0")
    await bench.reaches(ref, InstancePhase.ENDED)

    (stats,) = await bench.provider.read_stats()

    assert stats.containers == ()
