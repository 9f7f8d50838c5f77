"""How instances of the process provider start, run and end."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace

import pytest

from tests.integration.process.conftest import Bench, is_alive, shell
from tests.support.eventually import eventually
from vk_provider.faults import RejectedError, UnavailableError
from vk_provider.pods.types import EndCause, InstancePhase, Running, Terminated, Waiting
from vk_provider.streams import ExecRequest
from vk_provider.testing.builders import make_container
from vk_provider.testing.contract_client import ScriptedClient

FOREVER = "while :; do sleep 0.1; done"


@pytest.mark.parametrize(
    ("script", "code", "signum", "reason"),
    [
        ("exit 0", 0, None, "Completed"),
        ("exit 3", 3, None, "Error"),
        ("kill -9 $$", 137, 9, "Error"),
        ("kill $$", 143, 15, "Error"),
    ],
)
async def test_an_end_is_told_exactly(
    bench: Bench, script: str, code: int, signum: int | None, reason: str
) -> None:
    """Exit code, signal and both times."""
    ref = await bench.sh(script)

    seen = await bench.reaches(ref, InstancePhase.ENDED)

    (state,) = (each.state for each in seen.containers)
    assert isinstance(state, Terminated)
    assert (state.exit_code, state.signal, state.reason) == (code, signum, reason)
    assert state.started_at is not None
    assert state.finished_at is not None
    assert seen.created_at is not None
    assert seen.created_at <= state.started_at <= state.finished_at
    assert seen.ended_by is None


async def test_a_command_that_is_not_there_is_a_start_error(bench: Bench) -> None:
    """It never started, and the message says what was not found."""
    ref = await bench.create(make_container(command=["no-such-command-anywhere"]))

    seen = await bench.reaches(ref, InstancePhase.ENDED)

    (state,) = (each.state for each in seen.containers)
    assert isinstance(state, Terminated)
    assert (state.exit_code, state.reason, state.started_at) == (128, "StartError", None)
    assert "no-such-command-anywhere" in (state.message or "")


async def test_without_a_command_a_container_waits(bench: Bench) -> None:
    """As an image whose entrypoint just waits."""
    ref = await bench.create(make_container())

    await bench.reaches(ref, InstancePhase.RUNNING)

    assert (await bench.run(ref, "echo here")).stdout == b"here\n"


async def test_init_containers_run_in_order_before_the_others(bench: Bench) -> None:
    """Each to its end; what they leave in a shared folder is there for the next."""
    mounts = [{"name": "shared", "mountPath": "/work"}]
    ref = await bench.create(
        shell("main", "echo main >> work/order; cat work/order", volumeMounts=mounts),
        initContainers=[
            shell("one", "sleep 0.1; echo one >> work/order", volumeMounts=mounts),
            shell("two", "echo two >> work/order", volumeMounts=mounts),
        ],
        volumes=[{"name": "shared", "emptyDir": {}}],
    )

    seen = await bench.reaches(ref, InstancePhase.ENDED)

    assert await bench.logs(ref) == [b"one", b"two", b"main"]
    assert [each.name for each in seen.init_containers] == ["one", "two"]


async def test_a_failed_init_container_ends_the_instance(bench: Bench) -> None:
    """The others never start."""
    ref = await bench.create(
        shell("main", "exit 0"),
        initContainers=[shell("one", "exit 7"), shell("two", "exit 0")],
    )

    await bench.reaches(ref, InstancePhase.ENDED)

    assert getattr(bench.container(ref, "one").state, "exit_code", None) == 7
    assert isinstance(bench.container(ref, "two").state, Waiting)
    assert isinstance(bench.container(ref, "main").state, Waiting)


async def test_a_sidecar_runs_beside_the_others_and_ends_after_them(bench: Bench) -> None:
    """It is asked with SIGTERM once nobody else is left."""
    sidecar = shell("proxy", f"trap 'exit 5' TERM; {FOREVER}", restartPolicy="Always")
    ref = await bench.create(
        shell("main", "sleep 0.3; exit 0"), initContainers=[sidecar, shell("after", "exit 0")]
    )
    await bench.reaches(ref, InstancePhase.RUNNING)
    assert isinstance(bench.container(ref, "proxy").state, Running)

    await bench.reaches(ref, InstancePhase.ENDED)

    assert getattr(bench.container(ref, "proxy").state, "exit_code", None) == 5
    assert getattr(bench.container(ref).state, "exit_code", None) == 0


async def test_containers_end_each_for_itself(bench: Bench) -> None:
    """The instance has ended when all of them have."""
    ref = await bench.create(shell("one", "exit 1"), shell("two", FOREVER))

    await bench.eventually(ref, lambda seen: isinstance(seen.containers[0].state, Terminated))

    assert bench.seen(ref).phase is InstancePhase.RUNNING
    await bench.eventually(ref, lambda seen: isinstance(seen.containers[1].state, Running))


async def test_a_delete_asks_first(bench: Bench) -> None:
    """SIGTERM; who ends by itself within the grace keeps its exit code."""
    ref = await bench.sh(f"trap 'echo bye; exit 6' TERM; echo up; {FOREVER}")
    await eventually(lambda: bench.service.find(ref).find("main").pid)
    instance = bench.service.find(ref)
    await bench.run(ref, "sleep 0.2")

    await bench.provider.delete_instance(ref, 20)

    assert bench.seen(ref).phase is InstancePhase.DELETING
    await bench.service.settled()
    assert instance.is_gone
    assert getattr(instance.containers["main"].state, "exit_code", None) == 6


async def test_a_delete_kills_after_the_grace(bench: Bench) -> None:
    """Whoever ignores SIGTERM, with everything it had started."""
    ref = await bench.sh(f"trap '' TERM; sleep 1000 & echo $! > child; {FOREVER}")
    instance = bench.service.find(ref)
    child = int((await bench.run(ref, "until test -s child; do :; done; cat child")).stdout)

    await bench.provider.delete_instance(ref, 1)
    await bench.service.settled()

    assert getattr(instance.containers["main"].state, "exit_code", None) == 137
    assert not is_alive(child)


async def test_a_shorter_grace_overrides_a_longer_one(bench: Bench) -> None:
    """As a second, forced delete does."""
    ref = await bench.sh(f"trap '' TERM; {FOREVER}")

    await bench.provider.delete_instance(ref, 3600)
    await bench.provider.delete_instance(ref, 0)

    await bench.service.settled()
    assert not await bench.provider.list_instances()


async def test_daemons_end_with_their_instance(bench: Bench) -> None:
    """Also those that left the session of whoever started them."""
    ref = await bench.sh(f"setsid sh -c 'echo $$ > daemon; sleep 1000' & {FOREVER}")
    daemon = int((await bench.run(ref, "until test -s daemon; do :; done; cat daemon")).stdout)

    await bench.provider.delete_instance(ref, 0)
    await bench.service.settled()

    assert not is_alive(daemon)


async def test_what_a_container_started_ends_with_it(bench: Bench) -> None:
    """Its children and the commands that ran beside it, though the instance stays listed."""
    ref = await bench.sh("sleep 1000 & echo $! > child; until test -e go; do sleep 0.05; done")
    child = int((await bench.run(ref, "until test -s child; do :; done; cat child")).stdout)
    await bench.run(ref, "sleep 1000 & touch go")

    await bench.reaches(ref, InstancePhase.ENDED)

    assert not is_alive(child)
    assert bench.service.find(ref).guests.running == {}


async def test_a_killed_keeper_is_a_lost_instance(bench: Bench) -> None:
    """Nobody saw how its containers ended, so nothing is told of it; and none lives on."""
    ref = await bench.sh(f"sleep 1000 & echo $! > child; {FOREVER}")
    child = int((await bench.run(ref, "until test -s child; do :; done; cat child")).stdout)
    instance = bench.service.find(ref)
    assert instance.link is not None

    os.kill(instance.link.pid, signal.SIGKILL)

    seen = await bench.reaches(ref, InstancePhase.ENDED)
    assert seen.ended_by is EndCause.LOST
    (state,) = (each.state for each in seen.containers)
    assert isinstance(state, Terminated)
    assert state.exit_code is None
    await eventually(lambda: not is_alive(child), "the end of what it had started")


async def test_a_killed_keepers_commands_end(bench: Bench) -> None:
    """A command beside the container has nobody else who would end it."""
    ref, client = await bench.sh(FOREVER), ScriptedClient()
    request = ExecRequest("main", ("sh", "-c", f"sleep 1000 & echo $!; {FOREVER}"))
    command = asyncio.create_task(bench.provider.exec(ref, request, client))
    await client.stdout_has(b"\n")
    child = int(client.stdout)
    instance = bench.service.find(ref)
    link = instance.link
    assert link is not None
    # A command may say something before its keeper says that it has begun.
    (guest,) = instance.guests.running.values()
    await guest.begun.wait()

    os.kill(link.pid, signal.SIGKILL)

    assert await command == 137
    await eventually(lambda: not is_alive(child), "the end of what it had started")


async def test_a_keeper_that_is_asked_to_end_leaves_nothing(bench: Bench) -> None:
    """SIGTERM is an order like any other."""
    ref = await bench.sh(FOREVER)
    instance = bench.service.find(ref)
    assert instance.link is not None
    folder = instance.link.folder

    os.kill(instance.link.pid, signal.SIGTERM)

    await bench.reaches(ref, InstancePhase.ENDED)
    await eventually(lambda: instance.link is None, "the end of the keeper")
    assert folder.name not in os.listdir(folder.parent)


async def test_files_and_the_working_directory_are_below_the_containers_folder(
    bench: Bench,
) -> None:
    """Under their mount path, with their mode; HOME and TMPDIR are there too."""
    mounts = [{"name": "config", "mountPath": "/etc/app"}, {"name": "tmp", "mountPath": "/tmp"}]
    fields = {"workingDir": "/srv/app", "volumeMounts": mounts}
    pod = {
        "metadata": {"labels": {"tier": "front"}},
        "volumes": [
            {
                "name": "config",
                "downwardAPI": {
                    "items": [
                        {
                            "path": "tier",
                            "mode": 0o440,
                            "fieldRef": {"fieldPath": "metadata.labels['tier']"},
                        }
                    ]
                },
            },
            {"name": "tmp", "emptyDir": {}},
        ],
    }
    ref = await bench.create(shell("main", FOREVER, **fields), **pod)
    await bench.reaches(ref, InstancePhase.RUNNING)

    client = await bench.run(
        ref, 'pwd; cat ~/etc/app/tier; echo; stat -c %a ~/etc/app/tier; echo x > "$TMPDIR/x"; pwd'
    )

    root = bench.service.find(ref).find("main").root
    assert client.stdout.decode().splitlines()[:3] == [f"{root}/srv/app", "front", "440"]


async def test_mounts_that_collide_are_rejected(bench: Bench) -> None:
    """A file can't be a folder too; nothing is left."""
    item = {"path": "x", "fieldRef": {"fieldPath": "metadata.name"}}
    volumes = [
        {"name": name, "downwardAPI": {"items": [{**item, "path": path}]}}
        for name, path in (("one", "x"), ("two", "y"))
    ]
    mounts = [{"name": "one", "mountPath": "/a"}, {"name": "two", "mountPath": "/a/x"}]

    with pytest.raises(RejectedError, match="collide"):
        await bench.create(shell("main", FOREVER, volumeMounts=mounts), volumes=volumes)

    assert not await bench.provider.list_instances()


async def test_nothing_can_be_started_in_a_folder_that_is_gone(bench: Bench) -> None:
    """A fault of the machine, in a call that made nothing."""
    gone = bench.service.config.folder / "gone"
    bench.service.config = replace(bench.service.config, folder=gone)

    with pytest.raises(UnavailableError, match="nothing was started"):
        await bench.create(make_container())

    assert not await bench.provider.list_instances()
