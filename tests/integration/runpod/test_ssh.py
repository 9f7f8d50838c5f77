"""Commands and ports over SSH, against the simulator's servers: what the contract can't know."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from vk_provider_runpod.provider import RunPodProvider
from vk_provider_runpod.simulator import Options, Simulator, running
from vk_provider_runpod.simulator.model import Behaviour
from vk_provider_runpod.simulator.shells import Shells

from tests.integration.runpod.conftest import API_KEY
from tests.support.eventually import eventually
from vk_provider.faults import DeniedError, NotSupportedError, UnavailableError
from vk_provider.pods.types import InstanceRef
from vk_provider.provider import capabilities
from vk_provider.streams import AttachRequest, ExecRequest
from vk_provider.testing.builders import make_container, make_resolved_pod, make_stamp
from vk_provider.testing.contract_client import ScriptedClient

MakeProvider = Callable[..., RunPodProvider]


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    """One whose pods have SSH servers."""
    options = Options(speed=0, pull_seconds=0, log_every_seconds=0, api_key=API_KEY, runs_exec=True)
    async with running(options) as found:
        yield found


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """The node's private key."""
    path = tmp_path / "key"
    make_key(path)
    return path


@pytest.fixture
def ssh_block(key: Path) -> dict[str, Any]:
    """The configuration that reads it."""
    return {"privateKey": {"file": str(key)}}


async def running_pod(provider: RunPodProvider, simulator: Simulator, **pod: Any) -> InstanceRef:
    """An instance whose container has been up for a while."""
    wanted = make_resolved_pod(**pod)
    ref = await provider.create_instance(wanted, (await provider.list_offers(0))[0])
    simulator.state.clock.advance(5)
    return ref


async def run(provider: RunPodProvider, ref: InstanceRef, script: str) -> tuple[int, bytes]:
    """A script's exit code and output."""
    client = ScriptedClient()
    code = await provider.exec(ref, ExecRequest("main", ("sh", "-c", script)), client)
    return code, bytes(client.stdout)


def servers(simulator: Simulator) -> Shells:
    """The simulated pods' SSH servers."""
    assert simulator.state.shells is not None
    return simulator.state.shells


def make_key(path: Path, **options: Any) -> None:
    """Write a private key."""
    path.write_bytes(asyncssh.generate_private_key("ssh-ed25519").export_private_key(**options))


async def test_variables_survive_the_way_whatever_they_hold(
    make_provider: MakeProvider, simulator: Simulator, ssh_block: dict[str, Any]
) -> None:
    """Quotes, newlines, a shell's own characters."""
    value = 'it\'s "a"\nb $HOME `x` \\1 &\n'
    container = make_container(env=[{"name": "ODD", "value": value}, {"name": "UID", "value": "7"}])
    async with make_provider(ssh=ssh_block) as provider:
        assert {"exec", "port-forward"} <= set(capabilities(provider))
        ref = await running_pod(provider, simulator, containers=[container])

        assert await run(provider, ref, 'printf %s "$ODD"') == (0, value.encode())


@pytest.mark.parametrize("tty", [False, True])
async def test_a_command_hears_ctrl_c_whoever_started_us(
    make_provider: MakeProvider,
    simulator: Simulator,
    ssh_block: dict[str, Any],
    deaf: None,
    tty: bool,
) -> None:
    """What runs in the background ignores it, and so would all that it starts."""
    async with make_provider(ssh=ssh_block) as provider:
        ref = await running_pod(provider, simulator)
        client = ScriptedClient()
        request = ExecRequest("main", ("sh", "-c", "kill -INT $$; echo deaf"), tty=tty)
        await provider.exec(ref, request, client)

        assert b"deaf" not in client.stdout


async def test_commands_share_a_connection_until_it_is_full(
    make_provider: MakeProvider, simulator: Simulator, ssh_block: dict[str, Any]
) -> None:
    """A server takes ten at a time on one: nobody waits, and nobody is refused."""
    async with make_provider(ssh=ssh_block) as provider:
        ref = await running_pod(provider, simulator)
        for _ in range(5):
            assert await run(provider, ref, "exit 4") == (4, b"")
        assert servers(simulator).connections(ref.id) == 1

        waits = "touch here-{}; while [ ! -e go ]; do sleep 0.05; done"
        commands = [
            asyncio.create_task(run(provider, ref, waits.format(number))) for number in range(20)
        ]
        root = servers(simulator).folder(ref.id)
        await eventually(lambda: len(list(root.glob("here-*"))) == 20, "all of them at once")
        (root / "go").touch()
        await asyncio.gather(*commands)

        assert servers(simulator).connections(ref.id) == 3


async def test_a_server_that_allows_fewer_commands_gets_more_connections(
    make_provider: MakeProvider, simulator: Simulator, ssh_block: dict[str, Any]
) -> None:
    """As many as it takes."""
    servers(simulator).most_sessions = 2
    async with make_provider(ssh=ssh_block) as provider:
        ref = await running_pod(provider, simulator)

        found = await asyncio.gather(*(run(provider, ref, "sleep 0.2; echo up") for _ in range(7)))

        assert found == [(0, b"up\n")] * 7


async def test_a_connection_is_closed_when_nobody_uses_it(
    make_provider: MakeProvider, simulator: Simulator, ssh_block: dict[str, Any]
) -> None:
    """And opened anew for the next."""
    async with make_provider(ssh={**ssh_block, "idleSeconds": 1}) as provider:
        ref = await running_pod(provider, simulator)
        await run(provider, ref, "true")
        assert servers(simulator).connections(ref.id) == 1

        await eventually(lambda: not servers(simulator).connections(ref.id), "its end")

        assert await run(provider, ref, "exit 2") == (2, b"")


async def test_a_changed_host_key_is_refused(
    make_provider: MakeProvider, simulator: Simulator, ssh_block: dict[str, Any]
) -> None:
    """Somebody may stand in between; what to do is said."""
    async with make_provider(ssh={**ssh_block, "idleSeconds": 1}) as provider:
        ref = await running_pod(provider, simulator)
        await run(provider, ref, "true")
        pod = simulator.state.model.pods[ref.id]
        pod.started_at = simulator.state.clock.now() - 1
        servers(simulator).cut(ref.id)
        await eventually(lambda: not servers(simulator).connections(ref.id), "the cut")

        with suppress(UnavailableError, DeniedError):
            await run(provider, ref, "true")  # over the connection of before, if we still have it
        with pytest.raises(DeniedError) as raised:
            await run(provider, ref, "true")

        words = str(raised.value)
        assert "another host key" in words
        assert "SHA256:" in words


async def test_a_list_that_lacks_an_instance_once_ends_no_command_there(
    make_provider: MakeProvider, simulator: Simulator, ssh_block: dict[str, Any]
) -> None:
    """Twice in a row it is gone, and so is the connection."""
    async with make_provider(ssh=ssh_block) as provider:
        ref = await running_pod(provider, simulator)
        await run(provider, ref, "true")

        simulator.state.faults.add("empty-list", count=1)
        await provider.list_instances()
        assert await run(provider, ref, "exit 3") == (3, b"")
        await provider.list_instances()
        simulator.state.faults.add("empty-list", count=2)
        for _ in range(2):
            assert servers(simulator).connections(ref.id) == 1
            await provider.list_instances()

        await eventually(lambda: not servers(simulator).connections(ref.id), "the end")


async def test_a_new_instance_is_trusted_anew(
    make_provider: MakeProvider, simulator: Simulator, ssh_block: dict[str, Any]
) -> None:
    """What was known of one that is gone is forgotten with it."""
    async with make_provider(ssh=ssh_block) as provider:
        ref = await running_pod(provider, simulator)
        await run(provider, ref, "true")
        await provider.delete_instance(ref, 0)
        await provider.list_instances()
        other = await running_pod(provider, simulator)

        assert await run(provider, other, "echo hello") == (0, b"hello\n")


@pytest.mark.parametrize(
    ("pod", "fault", "words"),
    [
        (
            {"metadata": {"annotations": {"runpod.vk-provider.dev/ssh": "false"}}},
            NotSupportedError,
            "no mapping for port 22/tcp",
        ),
        (
            {"containers": [make_container(command=["serve"])]},
            UnavailableError,
            "start script was replaced",
        ),
    ],
)
async def test_where_nothing_lets_us_in_the_reason_is_said(
    make_provider: MakeProvider,
    simulator: Simulator,
    ssh_block: dict[str, Any],
    pod: dict[str, Any],
    fault: type[Exception],
    words: str,
) -> None:
    """The pod's own wish, or an image without a server."""
    async with make_provider(ssh=ssh_block) as provider:
        ref = await running_pod(provider, simulator, **pod)

        with pytest.raises(fault, match=words):
            await run(provider, ref, "true")
        with pytest.raises(fault, match=words):
            await provider.open_port(ref, 80)


async def test_without_a_key_commands_are_refused_with_the_way_to_have_them(
    make_provider: MakeProvider, simulator: Simulator
) -> None:
    """And the instance is told of none, nor does the node say that it can do them."""
    async with make_provider() as provider:
        ref = await running_pod(provider, simulator)
        assert not {"exec", "port-forward"} & set(capabilities(provider))

        with pytest.raises(NotSupportedError, match=r"ssh: \{privateKey"):
            await run(provider, ref, "true")

    (body,) = simulator.state.bodies
    assert not {"PUBLIC_KEY", "SSH_PUBLIC_KEY"} & set(body["env"])
    assert body["ports"] == []


async def test_a_key_that_the_instance_was_not_told_of_is_not_let_in(
    make_provider: MakeProvider, simulator: Simulator, ssh_block: dict[str, Any], key: Path
) -> None:
    """As after a rotation, with instances from before it."""
    async with make_provider(ssh=ssh_block) as provider:
        ref = await running_pod(provider, simulator)
        make_key(key)

        with pytest.raises(NotSupportedError, match="does not take the key"):
            await run(provider, ref, "true")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (lambda path: path.write_text("nonsense"), "as ssh-keygen makes it"),
        (lambda path: make_key(path, format_name="pkcs8-pem", passphrase="x" * 9), "passphrase"),
    ],
    ids=["no key", "locked"],
)
async def test_a_key_that_is_none_stops_creates_with_a_sentence(
    make_provider: MakeProvider,
    simulator: Simulator,
    ssh_block: dict[str, Any],
    key: Path,
    content: Callable[[Path], object],
    words: str,
) -> None:
    """Rather than instances that nobody can enter. Nothing of the file is shown."""
    content(key)
    async with make_provider(ssh=ssh_block) as provider:
        offer = (await provider.list_offers(0))[0]

        with pytest.raises(DeniedError, match=words) as raised:
            await provider.create_instance(make_resolved_pod(), offer)

    assert "nonsense" not in str(raised.value)
    assert not simulator.state.model.pods


async def test_a_command_whose_instance_dies_ends_with_a_fault(
    make_provider: MakeProvider, simulator: Simulator, ssh_block: dict[str, Any]
) -> None:
    """Never as if it had succeeded."""
    async with make_provider(ssh=ssh_block) as provider:
        ref = await running_pod(provider, simulator)
        client = ScriptedClient()
        request = ExecRequest("main", ("sh", "-c", "echo up; sleep 60"))
        command = asyncio.create_task(provider.exec(ref, request, client))
        await client.stdout_has(b"up")

        await provider.delete_instance(ref, 0)

        with pytest.raises(UnavailableError):
            await asyncio.wait_for(command, 20)


async def test_a_client_that_can_not_be_written_to_ends_its_command(
    make_provider: MakeProvider, simulator: Simulator, ssh_block: dict[str, Any]
) -> None:
    """Its fault comes through, and nothing runs on."""

    class Broken(ScriptedClient):
        async def write_stdout(self, chunk: bytes) -> None:
            raise UnavailableError("gone")

    async with make_provider(ssh=ssh_block) as provider:
        ref = await running_pod(provider, simulator)
        script = "echo up; while :; do echo x >> alive; sleep 0.02; done"

        with pytest.raises(UnavailableError, match="gone"):
            await provider.exec(ref, ExecRequest("main", ("sh", "-c", script)), Broken())

        _, before = await run(provider, ref, "wc -c < alive")
        await asyncio.sleep(0.3)
        assert await run(provider, ref, "wc -c < alive") == (0, before)


async def test_attach_shows_output_and_takes_no_input(
    make_provider: MakeProvider, simulator: Simulator
) -> None:
    """Without SSH, too; a line longer than a chunk comes in several."""
    async with make_provider() as provider:
        ref = await running_pod(provider, simulator)
        pod, client = simulator.state.model.pods[ref.id], ScriptedClient()
        attached = asyncio.create_task(provider.attach(ref, AttachRequest("main"), client))
        try:
            async with asyncio.timeout(20):
                while b"y" not in client.stdout:
                    pod.said.append((simulator.state.clock.now(), "container", "y" * 70_000))
                    await asyncio.sleep(0.1)
        finally:
            attached.cancel()
            with suppress(asyncio.CancelledError):
                await attached

        assert client.largest <= 64 * 1024
        with pytest.raises(NotSupportedError, match="no standard input"):
            await provider.attach(ref, AttachRequest("main", stdin=True), client)


async def test_a_server_can_be_started_beside_a_command(
    make_provider: MakeProvider, simulator: Simulator, ssh_block: dict[str, Any]
) -> None:
    """By the start wrapper, if the pod or the operator wishes so."""
    containers = [make_container(command=["serve"])]
    wish = {"annotations": {"runpod.vk-provider.dev/ssh": "start"}}
    async with make_provider(ssh=ssh_block) as provider:
        asked = await running_pod(provider, simulator, containers=containers, metadata=wish)
        assert await run(provider, asked, "echo in") == (0, b"in\n")
    async with make_provider(ssh={**ssh_block, "startServer": True}) as provider:
        other = await running_pod(provider, simulator, name="app-2", containers=containers)
        assert await run(provider, other, "echo in") == (0, b"in\n")


async def test_an_image_without_the_habit_can_be_rehearsed(
    make_provider: MakeProvider, simulator: Simulator, ssh_block: dict[str, Any]
) -> None:
    """By a rule: a server beside a command, or none in spite of everything."""
    state = simulator.state
    state.model.default = replace(state.model.default, ssh=True)
    async with make_provider(ssh=ssh_block) as provider:
        commanded = {"containers": [make_container(command=["serve"])]}
        ref = await running_pod(provider, simulator, **commanded)
        assert await run(provider, ref, "echo in") == (0, b"in\n")

        state.model.default = Behaviour(pull_seconds=0, ssh=False)
        bare = await running_pod(provider, simulator, name="app-2")
        with pytest.raises(UnavailableError, match="the image has none"):
            await run(provider, bare, "true")


async def test_usage_is_what_containers_say_that_let_us_in(
    make_provider: MakeProvider, simulator: Simulator, ssh_block: dict[str, Any]
) -> None:
    """The others' is what RunPod's list says; who did not let us in is not asked at once again."""
    closed = {"metadata": {"annotations": {"runpod.vk-provider.dev/ssh": "false"}}}
    async with make_provider(ssh=ssh_block) as provider:
        await running_pod(provider, simulator)
        shut = await running_pod(provider, simulator, name="app-2", **closed)

        first = {each.pod_uid: each.containers[0] for each in await provider.read_stats()}
        simulator.state.clock.advance(100)
        asked = len(simulator.state.requests)
        second = {each.pod_uid: each.containers[0] for each in await provider.read_stats()}

    open_uid, shut_uid = make_stamp("app-1").pod_uid, make_stamp("app-2").pod_uid
    before, after = first[open_uid].cpu_nanoseconds, second[open_uid].cpu_nanoseconds
    assert before is not None
    assert after is not None
    assert after - before == 3_000_000_000
    assert first[open_uid].memory_working_set_bytes == (512 << 20) * 7 // 8
    assert first[shut_uid].cpu_nanoseconds is None
    assert first[shut_uid].memory_usage_bytes == 480_000_000
    paths = [each.path for each in simulator.state.requests[asked:]]
    assert paths == ["/v2/pods"], shut


@pytest.fixture(autouse=True)
def _nothing_left(tmp_path: Path) -> Iterator[None]:
    """Whatever was started in a simulated container is gone with its simulator, and its disk. The
    containers' folders tell them from those of tests that run beside."""
    disks = tmp_path / "disks"
    disks.mkdir()
    before, tempfile.tempdir = tempfile.tempdir, str(disks)
    yield
    tempfile.tempdir = before
    assert not list(disks.iterdir())
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            assert f"HOME={disks}/".encode() not in (entry / "environ").read_bytes(), entry
