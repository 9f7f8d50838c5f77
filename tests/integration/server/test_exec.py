"""exec and attach over raw SPDY connections and WebSockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvloop

from tests.integration.server.bench import Caller, SilentBackend, eventually, make_pod
from tests.integration.server.conftest import Stage
from tests.integration.server.streams_bench import (
    V4,
    V5,
    StreamingBackend,
    ask,
    spdy,
    upgrade_lines,
    websocket,
)
from tests.unit.wire.peer import PING, control, go_away, words
from vk_provider.faults import NotSupportedError, UnavailableError
from vk_provider.pods.types import InstanceRef
from vk_provider.server.lookup import ServedPod
from vk_provider.server.remote_command import StreamTimes
from vk_provider.streams import AttachRequest, ContainerIO, ExecRequest, TerminalSize

EXEC = "/exec/ns/p/c?command=sh&command=-c&command=a%20b&output=1&error=1"
INPUT = EXEC + "&input=1"
SUCCESS = {"metadata": {}, "status": "Success"}


@pytest.fixture
def backend(stage: Stage) -> StreamingBackend:
    """The pod's provider."""
    backend = StreamingBackend()
    stage.pods.served = ServedPod(make_pod(), backend, InstanceRef("i-1"))
    return backend


async def echo(io: ContainerIO) -> int:
    """Say hello, give the input back, end with 3."""
    await io.write_stderr(b"hello")
    async for chunk in io.stdin():
        await io.write_stdout(chunk)
    return 3


async def forever(io: ContainerIO) -> int:
    """Until cancelled."""
    await asyncio.Event().wait()
    return 0


def both_loops(test: Callable[[Stage], Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on a stage of its own, on asyncio's loop and on uvloop's."""

    @pytest.mark.parametrize(
        "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
    )
    def run(new_loop: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path) -> None:
        async def staged() -> None:
            stage = Stage(tmp_path)
            stage.port = await stage.server.start()
            try:
                await test(stage)
            finally:
                await stage.server.close()

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(staged())

    run.__doc__ = test.__doc__
    return run


@both_loops
async def test_a_whole_session_over_spdy(stage: Stage) -> None:
    """Both outputs, half-closed input, the exit code, and the order of the end."""
    stage.pods.served = ServedPod(make_pod(), StreamingBackend(echo), InstanceRef("i-1"))
    async with spdy(stage, INPUT) as client:
        assert "Upgrade: SPDY/3.1\r\n" in client.head
        assert f"X-Stream-Protocol-Version: {V4}\r\n" in client.head
        await client.open("error", "stdin", "stdout", "stderr")
        big = bytes(range(256)) * 4096
        for start in range(0, len(big), 32768):
            client.send("stdin", big[start : start + 32768])
        client.send("stdin", fin=True)

        status = json.loads(await client.ended("error"))

        assert client.received("stdout") == big
        assert client.received("stderr") == b"hello"
        assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
        order = [client.ids[name] for name in ("stdout", "stderr", "error")]
        assert [number for _, number in client.fins()][:3] == order
        client.write(go_away())
        assert await client.until_end() == []
    await eventually(lambda: [status for _, status in stage.answers] == [101])


@both_loops
async def test_a_client_that_hangs_up_ends_the_command(stage: Stage) -> None:
    """The provider is cancelled; nothing of aiohttp's or ours stays."""
    backend = StreamingBackend(forever)
    stage.pods.served = ServedPod(make_pod(), backend, InstanceRef("i-1"))
    async with spdy(stage, INPUT) as client:
        await client.open("error", "stdin", "stdout", "stderr")
        await eventually(lambda: backend.running == 1)
    await eventually(lambda: backend.cancelled == 1)
    await eventually(lambda: len(asyncio.all_tasks()) <= 3)


@both_loops
async def test_a_server_that_stops_says_so(stage: Stage) -> None:
    """An error stream without a word would pass for success."""
    stage.pods.served = ServedPod(make_pod(), StreamingBackend(forever), InstanceRef("i-1"))
    async with spdy(stage, EXEC) as client:
        await client.open("error", "stdout", "stderr")
        closing = asyncio.create_task(stage.server.close())
        status = json.loads(await client.ended("error"))
        assert "the node's server is stopping" in status["message"]
        await client.close()
        await closing


@both_loops
async def test_a_client_that_is_not_read_is_missed_too(stage: Stage) -> None:
    """A command that takes no input would run for ever for nobody."""
    backend = StreamingBackend(forever)
    stage.pods.served = ServedPod(make_pod(), backend, InstanceRef("i-1"))
    async with spdy(stage, INPUT) as client:
        await client.open("error", "stdin", "stdout", "stderr")
        for _ in range(64):
            client.send("stdin", bytes(32 * 1024))
        await asyncio.sleep(0.2)
        assert backend.running == 1
        client.writer.transport.abort()
        await eventually(lambda: backend.cancelled == 1)


async def test_nothing_is_sent_before_the_client_speaks(
    stage: Stage, backend: StreamingBackend
) -> None:
    """client-go loses what comes right behind the 101."""
    async with spdy(stage, EXEC) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.reader.read(1), 0.2)


async def test_pings_are_answered_while_a_command_runs(
    stage: Stage, backend: StreamingBackend
) -> None:
    """The API server asks every 5 s."""
    backend.program = forever
    async with spdy(stage, EXEC) as client:
        await client.open("error", "stdout", "stderr")
        client.write(control(PING, words(7)))
        await client.until(lambda frame: frame == ("PING", 7))


async def test_a_terminal_has_a_size(stage: Stage, backend: StreamingBackend) -> None:
    """The first one, then changes; no stderr."""
    sizes: list[TerminalSize] = []

    async def program(io: ContainerIO) -> int:
        async for size in io.resizes():
            sizes.append(size)
            if len(sizes) == 2:
                break
        return 0

    backend.program = program
    async with spdy(stage, EXEC + "&tty=1") as client:
        await client.open("error", "stdout", "resize")
        client.send("resize", b'{"Width":80,"Height":24}\n')
        await eventually(lambda: len(sizes) == 1)
        client.send("resize", b'{"Width":100,"Height":40}\n')
        assert json.loads(await client.ended("error")) == SUCCESS
    assert sizes == [TerminalSize(80, 24), TerminalSize(100, 40)]
    assert backend.requests == [
        ExecRequest("c", ("sh", "-c", "a b"), stdin=False, stdout=True, stderr=False, tty=True)
    ]


async def test_streams_that_do_not_come_are_not_waited_for(
    stage: Stage, backend: StreamingBackend
) -> None:
    """Thirty seconds; here half of one."""
    async with spdy(stage, EXEC) as client:
        await client.open("error")
        status = json.loads(await client.ended("error"))
    assert "timed out waiting for client to create streams" in status["message"]
    assert backend.requests == []


async def test_silence_for_too_long_ends_a_session(tmp_path: Path) -> None:
    """Four hours; here a third of a second."""
    stage = Stage(tmp_path, stream_times=StreamTimes(idle_seconds=0.3, close_seconds=1))
    backend = StreamingBackend(forever)
    stage.pods.served = ServedPod(make_pod(), backend, InstanceRef("i-1"))
    stage.port = await stage.server.start()
    async with spdy(stage, EXEC) as client:
        await client.open("error", "stdout", "stderr")
        assert "no byte in either direction for 0.3 s" in (await client.ended("error")).decode()
    assert backend.cancelled == 1
    await stage.server.close()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (UnavailableError("the tunnel is down"), "the tunnel is down"),
        (NotSupportedError("no terminals here"), "no terminals here"),
        (ValueError("secret detail"), "unexpected ValueError in the provider"),
    ],
)
async def test_a_fault_of_the_backend_is_told(
    stage: Stage, backend: StreamingBackend, fault: Exception, words: str
) -> None:
    """As an internal error; what nobody foresaw stays in our log."""

    async def program(io: ContainerIO) -> int:
        raise fault

    backend.program = program
    async with spdy(stage, EXEC) as client:
        await client.open("error", "stdout", "stderr")
        status = json.loads(await client.ended("error"))
    assert (status["reason"], status["code"]) == ("InternalError", 500)
    assert words in status["message"]
    assert "secret detail" not in status["message"]


async def test_a_slow_reader_holds_the_command_up(stage: Stage, backend: StreamingBackend) -> None:
    """Not our memory: what is not read stays with the command."""
    written = 0

    async def program(io: ContainerIO) -> int:
        nonlocal written
        for _ in range(1024):
            await io.write_stdout(bytes(64 * 1024))
            written += 64 * 1024
        return 0

    backend.program = program
    async with spdy(stage, EXEC) as client:
        await client.open("error", "stdout", "stderr")
        await eventually(lambda: written > 0)
        before = -1
        while before != written:
            before = written
            await asyncio.sleep(0.2)
        # The kernel's buffers on both sides of a loopback hold some MiB; ours at most one.
        assert written < 16 * 1024 * 1024
        assert json.loads(await client.ended("error")) == SUCCESS
        assert len(client.received("stdout")) == 64 * 1024 * 1024


async def test_a_command_that_does_not_read_holds_the_client_up(
    stage: Stage, backend: StreamingBackend
) -> None:
    """At most a MiB waits for it; then it gets all."""
    go, total = asyncio.Event(), 0

    async def program(io: ContainerIO) -> int:
        nonlocal total
        await go.wait()
        async for chunk in io.stdin():
            assert len(chunk) <= 64 * 1024
            total += len(chunk)
        return 0

    backend.program = program
    async with spdy(stage, INPUT) as client:
        await client.open("error", "stdin", "stdout", "stderr")

        async def pour() -> None:
            for _ in range(1024):
                client.send("stdin", bytes(32 * 1024))
                await client.writer.drain()
            client.send("stdin", fin=True)

        pouring = asyncio.create_task(pour())
        done, _ = await asyncio.wait({pouring}, timeout=1)
        assert not done
        go.set()
        assert json.loads(await client.ended("error")) == SUCCESS
        await pouring
    assert total == 32 * 1024 * 1024


@pytest.mark.parametrize("protocol", [V5, V4])
async def test_a_whole_session_over_websocket(
    stage: Stage, backend: StreamingBackend, protocol: str
) -> None:
    """The same core: an empty message first, a Status last, close code 1000."""
    backend.program = echo
    async with websocket(stage, INPUT, protocol) as socket:
        assert socket.protocol == protocol
        assert (await socket.receive()).data == b"\x01"
        await socket.send_bytes(b"\x00" + b"abc")
        messages = [(await socket.receive()).data]
        if protocol == V5:
            await socket.send_bytes(b"\xff\x00")
            messages.extend([message.data async for message in socket])
            assert socket.close_code == 1000
            assert json.loads(messages[-1][1:])["details"]["causes"][0]["message"] == "3"
        assert b"\x02hello" in messages
    await eventually(lambda: backend.running == 0)
    # Before v5 input has no end but the client's: the command is cancelled.
    assert backend.cancelled == (0 if protocol == V5 else 1)


async def test_no_protocol_is_the_oldest(stage: Stage, backend: StreamingBackend) -> None:
    """Plain text on the error channel, and nothing on success."""

    async def program(io: ContainerIO) -> int:
        await io.write_stdout(b"out")
        return 4

    backend.program = program
    async with websocket(stage, EXEC) as socket:
        assert socket.protocol is None
        messages = [message.data async for message in socket]
    assert messages[:2] == [b"\x01", b"\x01out"]
    assert messages[2].startswith(b"\x03command terminated with non-zero exit code")


async def test_a_huge_message_is_refused(stage: Stage, backend: StreamingBackend) -> None:
    """The library holds a whole one at a time."""
    backend.program = echo
    async with websocket(stage, INPUT, V5) as socket:
        with contextlib.suppress(ConnectionError):
            await socket.send_bytes(bytes(9 << 20))
        with contextlib.suppress(ConnectionError):
            async for _ in socket:
                pass
        assert socket.close_code in (1006, 1009)
    await eventually(lambda: backend.running == 0)


async def test_base64_over_websocket(stage: Stage, backend: StreamingBackend) -> None:
    """For clients that can send text only."""

    async def program(io: ContainerIO) -> int:
        await io.write_stdout(b"out")
        return 0

    backend.program = program
    async with websocket(stage, EXEC, "v4.base64.channel.k8s.io") as socket:
        texts = [message.data async for message in socket]
    assert texts[:2] == ["1", "1b3V0"]


async def test_a_websocket_that_breaks_ends_the_command(
    stage: Stage, backend: StreamingBackend
) -> None:
    """As over SPDY."""
    backend.program = forever
    async with websocket(stage, EXEC, V5) as socket:
        await eventually(lambda: backend.running == 1)
        await socket.close()
    await eventually(lambda: backend.cancelled == 1)
    await eventually(lambda: len(stage.answers) == 1)


async def test_a_websocket_that_is_not_read_is_missed_too(
    stage: Stage, backend: StreamingBackend
) -> None:
    """As over SPDY."""
    backend.program = forever
    async with websocket(stage, INPUT, V5) as socket:
        for _ in range(24):
            await socket.send_bytes(b"\0" + bytes(32 * 1024))
        await eventually(lambda: backend.running == 1)
        transport = socket.get_extra_info("socket")
        assert transport is not None
        socket._writer.transport.abort()
        await eventually(lambda: backend.cancelled == 1)


async def test_spdy_may_come_by_get(stage: Stage, backend: StreamingBackend) -> None:
    """As a kubelet takes it."""
    async with spdy(stage, EXEC, V4, method="GET") as client:
        await client.open("error", "stdout", "stderr")
        assert json.loads(await client.ended("error")) == SUCCESS


async def test_attach_takes_the_terminal_from_the_pod(
    stage: Stage, backend: StreamingBackend
) -> None:
    """Whatever the client believes; and no exit code, as from a kubelet."""
    pod = make_pod()
    pod["spec"]["containers"][0]["tty"] = True
    stage.pods.served = ServedPod(pod, backend, InstanceRef("i-1"))
    backend.program = echo
    async with spdy(stage, "/attach/ns/p/u-1/c?output=1&error=1") as client:
        await client.open("error", "stdout", "stderr")
        await eventually(lambda: len(backend.requests) == 1)
        await client.close()
    assert backend.requests == [AttachRequest("c", False, True, False, tty=True)]


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/exec/ns/p/c?command=x", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("/exec/ns/p/c?output=1", 400, 'query parameter "command" is required'),
        ("/exec/ns/nobody/c?command=x&output=1", 404, "pod does not exist"),
        ("/exec/ns/p/other-uid/c?command=x&output=1", 404, "pod does not exist"),
        ("/exec/ns/p/x?command=x&output=1", 500, 'container not found ("x")'),
        ("/attach/ns/p/x?output=1", 500, 'container not found ("x")'),
    ],
)
async def test_refusals_are_a_kubelets(
    backend: StreamingBackend, admin: Caller, path: str, status: int, text: str
) -> None:
    """Before any upgrade."""
    assert await admin.ask("POST", path) == (status, text)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"waiting": {"reason": "ContainerCreating"}}, "is waiting to start (ContainerCreating)"),
        ({"terminated": {"exitCode": 0}}, "container is in CONTAINER_EXITED state"),
        ({}, 'container not found ("c")'),
    ],
)
async def test_a_container_that_does_not_run(
    stage: Stage, admin: Caller, state: dict[str, Any], words: str
) -> None:
    """Says why."""
    stage.pods.served = ServedPod(make_pod(state), StreamingBackend(), InstanceRef("i-1"))
    status, text = await admin.ask("POST", EXEC)
    assert status == 500
    assert words in text
    assert ": " not in text


async def test_without_the_capability_it_is_501(stage: Stage, admin: Caller) -> None:
    """With a sentence."""
    stage.pods.served = ServedPod(make_pod(), SilentBackend(), InstanceRef("i-1"))
    for path in (EXEC, "/attach/ns/p/c?output=1", "/portForward/ns/p"):
        status, text = await admin.ask("POST", path)
        assert status == 501
        assert text.startswith("this pod's backend can't")


async def test_a_pod_without_an_instance_says_so(stage: Stage, admin: Caller) -> None:
    """It may be on its way."""
    stage.pods.served = ServedPod(make_pod())
    status, text = await admin.ask("POST", EXEC)
    assert (status, "it has no instance (yet)" in text) == (500, True)


@pytest.mark.parametrize(
    ("lines", "status", "words"),
    [
        (upgrade_lines("v9.channel.k8s.io"), 403, "unable to negotiate protocol"),
        (upgrade_lines(), 400, "X-Stream-Protocol-Version"),
        (["Content-Length: 0"], 400, "Upgrade request required"),
    ],
)
async def test_what_is_no_upgrade(
    stage: Stage, backend: StreamingBackend, lines: list[str], status: int, words: str
) -> None:
    """A kubelet's answers; the 403 lists what is accepted, a line each."""
    head, reader, writer = await ask(stage, EXEC, [*lines, "Connection: close"])
    text = head + (await reader.read()).decode()
    assert f"HTTP/1.1 {status} " in head
    assert words in text
    assert text.count("X-Accepted-Stream-Protocol-Versions: ") == (4 if status == 403 else 0)
    writer.close()


async def test_a_wrong_websocket_protocol_is_403(stage: Stage, backend: StreamingBackend) -> None:
    """Before the upgrade."""
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with websocket(stage, EXEC, "v9.channel.k8s.io"):
            pass
    assert refused.value.status == 403
