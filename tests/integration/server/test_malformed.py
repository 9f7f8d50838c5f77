"""What nobody should send: a thousand broken requests, a crowd, peers that die or dawdle."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import ssl
from pathlib import Path

import pytest

from tests.integration.server.bench import Caller, client_context, eventually, make_pod
from tests.integration.server.conftest import Stage
from tests.integration.server.malformed import COUNT, EXEC, requests
from tests.integration.server.streams_bench import StreamingBackend, raw, spdy
from tests.unit.wire.peer import data
from vk_provider.pods.types import InstanceRef
from vk_provider.server.limits import Limits
from vk_provider.server.lookup import ServedPod
from vk_provider.server.memory import give_back
from vk_provider.server.remote_command import StreamTimes
from vk_provider.streams import ContainerIO

AT_ONCE = 8
CROWD = 200


async def chatty(io: ContainerIO) -> int:
    """Say something, then give back what comes."""
    await io.write_stdout(b"ready")
    async for chunk in io.stdin():
        await io.write_stdout(chunk)
    return 0


async def throw(stage: Stage, context: ssl.SSLContext, request: bytes) -> None:
    """One broken request on a connection of its own; then hang up."""
    head, _, rest = request.partition(b"\0UPGRADED\0")
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
        reader, writer = await asyncio.open_connection("127.0.0.1", stage.port, ssl=context)
        try:
            writer.write(head)
            async with asyncio.timeout(0.3):
                if rest:
                    await reader.readuntil(b"\r\n\r\n")
                    writer.write(rest)
                    await writer.drain()
                    await asyncio.sleep(0.005)
                else:
                    await reader.read(100)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


async def test_a_thousand_broken_requests_leave_nothing(
    stage: Stage, admin: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    """No traceback, no task, no file, and the server still answers."""
    backend = StreamingBackend(chatty)
    stage.pods.served = ServedPod(make_pod(), backend, InstanceRef("i-1"))
    pair = stage.authority.client(stage.folder, "admin", "admins")
    context = client_context(None, pair)
    assert await admin.get("/healthz") == (200, "ok")
    tasks, files = len(asyncio.all_tasks()), descriptors()
    free = asyncio.Semaphore(AT_ONCE)
    thrown = 0

    async def one(request: bytes) -> None:
        nonlocal thrown
        async with free:
            await throw(stage, context, request)
            thrown += 1

    with caplog.at_level(logging.INFO):
        await asyncio.gather(*(one(request) for request in requests()))

        assert thrown == COUNT
        assert await admin.get("/healthz") == (200, "ok")
        await eventually(lambda: backend.running == 0)
        await eventually(lambda: all(port.closed for port in backend.ports))
        await eventually(lambda: len(asyncio.all_tasks()) <= tasks)
        await eventually(lambda: descriptors() <= files)
    told = [record for record in caplog.records if record.exc_info or record.levelno >= 40]
    assert [record.getMessage() for record in told] == []


async def test_what_is_no_tls_is_dropped(stage: Stage, admin: Caller) -> None:
    """Plain HTTP on the TLS port, and noise."""
    for noise in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(500), b"\x16\x03\x01"):
        reader, writer = await asyncio.open_connection("127.0.0.1", stage.port)
        writer.write(noise)
        writer.write_eof()
        with contextlib.suppress(OSError):
            await asyncio.wait_for(reader.read(), 10)
        writer.close()
    assert (await admin.get("/healthz"))[0] == 200


async def test_a_peer_that_dies_in_the_middle_of_a_frame(stage: Stage) -> None:
    """Its command ends."""
    backend = StreamingBackend(chatty)
    stage.pods.served = ServedPod(make_pod(), backend, InstanceRef("i-1"))
    async with spdy(stage, EXEC) as client:
        await client.open("error", "stdin", "stdout", "stderr")
        client.write(data(client.ids["stdin"], bytes(1000))[:500])
        await client.writer.drain()
        client.writer.transport.abort()
        await eventually(lambda: backend.cancelled == 1)


async def test_a_slow_upgrade_is_cut_off(stage: Stage) -> None:
    """Whoever dribbles a request byte by byte has as long as anybody else."""
    reader, writer = await raw(stage)

    async def dribble() -> None:
        with contextlib.suppress(OSError):
            for byte in b"POST /exec/ns/p/c HTTP/1.1\r\nHost: n\r\nX: " + b"y" * 100_000:
                writer.write(bytes([byte]))
                await asyncio.sleep(0.02)

    dribbling = asyncio.create_task(dribble())
    with contextlib.suppress(OSError):
        assert await asyncio.wait_for(reader.read(), 10) == b""
    dribbling.cancel()
    writer.close()


async def test_two_hundred_commands_at_once_cost_little(tmp_path: Path) -> None:
    """And nothing in the end: the third crowd leaves no more behind than the first."""
    stage = Stage(
        tmp_path,
        limits=Limits(connections=CROWD + 16, requests=CROWD + 16, close_seconds=1),
        stream_times=StreamTimes(creation_seconds=60),
    )
    backend = StreamingBackend(chatty)
    stage.pods.served = ServedPod(make_pod(), backend, InstanceRef("i-1"))
    stage.port = await stage.server.start()
    left = []
    for _ in range(3):
        await _crowd(stage, backend)
        gc.collect()
        give_back()
        left.append(resident())
    await stage.server.close()
    assert left[2] - left[0] < 8 << 20, left
    assert len(asyncio.all_tasks()) <= 3


def resident() -> int:
    """How much memory this process holds, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


async def _crowd(stage: Stage, backend: StreamingBackend) -> None:
    payload = b"x" * 32 * 1024

    async def one(stack: contextlib.AsyncExitStack) -> None:
        client = await stack.enter_async_context(spdy(stage, EXEC))
        await client.open("error", "stdin", "stdout", "stderr")
        for _ in range(4):
            client.send("stdin", payload)
        client.send("stdin", fin=True)
        assert await client.ended("stdout") == b"ready" + payload * 4
        assert b"Success" in await client.ended("error")

    async with contextlib.AsyncExitStack() as stack:
        await asyncio.gather(*(one(stack) for _ in range(CROWD)))
    await eventually(lambda: backend.running == 0)
