"""Services: shared by name, ended with their loop or their process, whichever way that goes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.integration.process.conftest import Bench, is_alive
from tests.support.eventually import eventually
from vk_provider.pods.types import IMPLICIT_OFFER, InstancePhase
from vk_provider.provider import ProviderContext
from vk_provider.streams import ExecRequest
from vk_provider.testing.builders import CLUSTER_ID, NODE_NAME, make_resolved_pod
from vk_provider.testing.contract_client import ScriptedClient
from vk_provider.testing.process import ProcessProvider, close_services, factory
from vk_provider.testing.process_link import PREFIX, make_folder, sweep

CONTEXT = ProviderContext(CLUSTER_ID, NODE_NAME, "local", "config", "test/1")
LEAVING = """
import asyncio, signal, sys
from pathlib import Path
from vk_provider.pods.types import IMPLICIT_OFFER
from vk_provider.testing.builders import CLUSTER_ID, make_container, make_resolved_pod
from vk_provider.testing.process import ProcessConfig, ProcessProvider, ProcessService

# Whoever runs the tests in the background may have Ctrl-C ignored; that is inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)

async def main():
    service = ProcessService(ProcessConfig(folder=Path(sys.argv[1])))
    provider = ProcessProvider(service, CLUSTER_ID)
    script = "setsid sleep 1000 & sleep 1000 & echo $! > child; mv child pid; sleep 1000"
    container = make_container(command=["sh", "-c", script])
    ref = await provider.create_instance(make_resolved_pod(containers=[container]), IMPLICIT_OFFER)
    pid = service.find(ref).find("main").root / "pid"
    while not pid.exists():
        await asyncio.sleep(0.01)
    main = service.find(ref).find("main")
    print(main.pid, pid.read_text().strip(), service.find(ref).link.pid, flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


def provider(tmp_path: Path, **config: Any) -> ProcessProvider:
    """A provider as the core makes it."""
    return factory({"folder": str(tmp_path), **config}, CONTEXT)


async def test_a_named_service_outlives_its_providers(tmp_path: Path) -> None:
    """As a backend outlives a restart of ours: the same instance, still running."""
    async with provider(tmp_path, service="outlives") as before:
        ref = await before.create_instance(make_resolved_pod(), IMPLICIT_OFFER)
        async for seen in before.watch_instances():
            if seen.phase is InstancePhase.RUNNING:
                break

    async with provider(tmp_path, service="outlives") as after:
        assert await after.list_instances() == [seen]
        assert await after.exec(ref, ExecRequest("main", ("true",)), ScriptedClient()) == 0
        await close_services()
        assert await after.list_instances() == []
    assert os.listdir(tmp_path) == []


def test_a_service_does_not_outlive_its_loop(tmp_path: Path) -> None:
    """Nobody could hear of its processes any more, so the next one who asks ends them."""

    async def leave() -> int:
        async with provider(tmp_path, service="stale") as one:
            ref = await one.create_instance(make_resolved_pod(), IMPLICIT_OFFER)
            await eventually(lambda: one.service.find(ref).find("main").pid)
            return one.service.find(ref).find("main").pid or 0

    async def find() -> list[Any]:
        async with provider(tmp_path, service="stale") as one:
            try:
                return list(await one.list_instances())
            finally:
                await close_services()

    pid = asyncio.run(leave())

    assert asyncio.run(find()) == []
    assert not is_alive(pid)
    assert os.listdir(tmp_path) == []


def test_all_of_it_runs_on_uvloop(tmp_path: Path) -> None:
    """Pipes, terminals, ends and deletes."""

    async def live() -> tuple[bytes, bytes, int]:
        async with provider(tmp_path) as one:
            ref = await one.create_instance(make_resolved_pod(), IMPLICIT_OFFER)
            await eventually(lambda: one.service.find(ref).find("main").pid)
            piped, typed = ScriptedClient(b"x" * 300_000), ScriptedClient()
            await one.exec(ref, ExecRequest("main", ("cat",), stdin=True), piped)
            await one.exec(ref, ExecRequest("main", ("seq", "3"), tty=True), typed)
            return bytes(piped.stdout), bytes(typed.stdout), len(await one.list_instances())

    assert uvloop.run(live()) == (b"x" * 300_000, b"1\r\n2\r\n3\r\n", 1)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_hundreds_of_commands_may_start_at_once(
    tmp_path: Path, run: Callable[[Coroutine[Any, Any, set[int]]], set[int]]
) -> None:
    """More than the keeper's socket holds: they wait for their turn, and none is lost."""

    async def storm() -> set[int]:
        async with provider(tmp_path) as one:
            ref = await one.create_instance(make_resolved_pod(), IMPLICIT_OFFER)
            await eventually(lambda: one.service.find(ref).find("main").pid)
            # Large, so that the socket is full after a few of them.
            request = ExecRequest("main", ("sh", "-c", "exit 3", "x" * 20_000))
            clients = [ScriptedClient() for _ in range(200)]
            return set(await asyncio.gather(*(one.exec(ref, request, each) for each in clients)))

    assert run(storm()) == {3}
    assert os.listdir(tmp_path) == []


async def test_ctrl_c_reaches_a_command_though_we_ignore_it(bench: Bench) -> None:
    """What is ignored is inherited across exec: the keeper gives every signal its meaning back."""
    ours = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ref = await bench.sh("sleep 1000")
    finally:
        signal.signal(signal.SIGINT, ours)

    command = ("sh", "-c", "kill -INT $$; echo still here")
    assert await bench.provider.exec(ref, ExecRequest("main", command), ScriptedClient()) == 130


@pytest.fixture
def left(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process that runs an instance, and the ids of all that it started."""
    argv = [sys.executable, "-c", LEAVING, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, [int(pid) for pid in process.stdout.readline().split()]
        process.kill()


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_nothing_outlives_the_process_that_made_it(
    tmp_path: Path, left: tuple[subprocess.Popen[str], list[int]], signum: signal.Signals
) -> None:
    """However it ends: no process, no file."""
    process, pids = left
    assert len(pids) == 3
    assert all(is_alive(pid) for pid in pids)

    process.send_signal(signum)

    await eventually(lambda: not any(is_alive(pid) for pid in pids), "the end of its processes")
    assert os.listdir(tmp_path) == []


async def test_a_killed_keepers_folder_is_swept(tmp_path: Path, bench: Bench) -> None:
    """By the next service; folders that are in use stay."""
    stray, lock = make_folder(tmp_path)
    os.close(lock)
    used, lock = make_folder(tmp_path)

    removed = sweep(tmp_path)

    os.close(lock)
    assert removed == [stray]
    assert os.listdir(tmp_path) == [used.name]
    assert used.name.startswith(PREFIX)
    used.rmdir()
