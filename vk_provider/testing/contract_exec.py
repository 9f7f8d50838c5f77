"""What exec and attach must do where a provider offers them.

The containers of ``rig.pod()`` must have a POSIX ``sh`` with ``cat``, ``head``, ``sleep``, ``stty``
and ``wc``, and a working directory that can be written to.
Fed by :mod:`.contract_rig` and :mod:`.contract_client`; feeds :mod:`.contract_streams`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from vk_provider.faults import InstanceNotFoundError, NotSupportedError, ProviderError
from vk_provider.pods.types import InstancePhase, InstanceRef, ResolvedPod
from vk_provider.streams import (
    CHUNK_BYTES,
    AttachRequest,
    ExecRequest,
    SupportsAttach,
    SupportsExec,
    TerminalSize,
)
from vk_provider.testing.contract_client import ScriptedClient
from vk_provider.testing.contract_rig import ContractRig

_DEADLINE_SECONDS = 15.0
_NOT_THERE = InstanceRef("never-was")


class ExecContract:
    """Running commands."""

    @pytest.mark.parametrize(
        ("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill $$", 143)]
    )
    async def test_a_command_ends_with_its_own_exit_code(
        self, rig: ContractRig, script: str, code: int
    ) -> None:
        """128 + N where a signal ended it."""
        ref = await rig.running(rig.pod())

        assert await _shell(rig, ref, script, ScriptedClient()) == code

    async def test_output_and_errors_stay_apart_and_in_order(self, rig: ContractRig) -> None:
        """Complete, in chunks that nobody has to cut."""
        ref, client = await rig.running(rig.pod()), ScriptedClient()
        script = "i=0; while [ $i -lt 500 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done"

        await _shell(rig, ref, script, client)

        assert client.stdout.split(b"\n")[:-1] == [b"out %d" % n for n in range(500)]
        assert client.stderr.split(b"\n")[:-1] == [b"err %d" % n for n in range(500)]
        assert client.largest <= CHUNK_BYTES

    async def test_a_command_runs_in_the_environment_of_its_container(
        self, rig: ContractRig
    ) -> None:
        """And in no other."""
        ref, client = await rig.running(rig.pod()), ScriptedClient()

        await _shell(rig, ref, 'echo "$MODE"', client)

        assert client.stdout == b"plain\n"

    async def test_input_arrives_whole_and_its_end_too(self, rig: ContractRig) -> None:
        """Every byte; the command sees the end of its input and still answers."""
        sent = bytes(range(256)) * 4096 * 3
        ref, client = await rig.running(rig.pod()), ScriptedClient(sent)

        code = await _shell(rig, ref, "cat; echo; echo done", client, stdin=True)

        assert code == 0
        assert client.stdout == sent + b"\ndone\n"

    async def test_input_that_nobody_reads_holds_nothing_up(self, rig: ContractRig) -> None:
        """The command ends, and so does the exec, though the client has not closed its side. Where
        backends wait for the input itself, it is no more than a pipe holds."""
        ref, client = await rig.running(rig.pod()), ScriptedClient()
        client.type(bytes(1 << 20 if rig.ends_commands else 1 << 14))

        async with asyncio.timeout(_DEADLINE_SECONDS):
            assert await _shell(rig, ref, "exit 5", client, stdin=True) == 5

    async def test_a_command_that_is_not_there_fails_in_words(self, rig: ContractRig) -> None:
        """As a shell's 126 or 127, or as a fault; never as success."""
        ref, client = await rig.running(rig.pod()), ScriptedClient()
        request = ExecRequest("main", ("no-such-command-anywhere",))
        words = ""

        try:
            code = await _executor(rig).exec(ref, request, client)
        except ProviderError as fault:
            code, words = 127, str(fault)

        assert code in (126, 127)
        assert words or client.stderr

    async def test_a_client_that_leaves_takes_its_command_along(self, rig: ContractRig) -> None:
        """Cancelled: whatever it had started ends, and the container lives on. A backend that lets
        it run lets go of the client all the same."""
        ref, client = await rig.running(rig.pod()), ScriptedClient()
        busy = "echo up; while :; do echo x >> alive; sleep 0.02; done"
        command = asyncio.create_task(_shell(rig, ref, f"sh -c '{busy}'", client))
        await client.stdout_has(b"up")

        await _cancelled(command)

        async def has_stopped() -> bool:
            before = await _printed(rig, ref, "wc -c < alive")
            await asyncio.sleep(0.3)
            return before == await _printed(rig, ref, "wc -c < alive")

        if rig.ends_commands:
            await _until(has_stopped)
        assert await _printed(rig, ref, "echo next") == "next\n"
        assert (await rig.shown(ref)).phase is InstancePhase.RUNNING

    async def test_a_slow_client_slows_the_command(self, rig: ContractRig) -> None:
        """Nothing is dropped and nothing piles up."""
        ref, client = await rig.running(rig.pod()), ScriptedClient()
        chunks = max(256, 2 * rig.most_buffered_bytes // 65536)
        step = "head -c 65536 /dev/zero; i=$((i+1)); echo $i > progress"
        client.stall()
        script = f"i=0; while [ $i -lt {chunks} ]; do {step}; done"
        command = asyncio.create_task(_shell(rig, ref, script, client))

        async def has_stalled() -> bool:
            before = await _printed(rig, ref, "cat progress 2>&1")
            await asyncio.sleep(0.3)
            return before.strip().isdigit() and before == await _printed(rig, ref, "cat progress")

        try:
            await _until(has_stalled)
            written = int(await _printed(rig, ref, "cat progress")) * 65536
            client.go_on()
            async with asyncio.timeout(_DEADLINE_SECONDS):
                await command
        finally:
            await _cancelled(command)

        assert written <= rig.most_buffered_bytes
        assert len(client.stdout) == chunks * 65536

    async def test_commands_run_side_by_side(self, rig: ContractRig) -> None:
        """Each with its own streams."""
        ref, clients = await rig.running(rig.pod()), [ScriptedClient(b"%d" % n) for n in range(12)]

        codes = await asyncio.gather(
            *(_shell(rig, ref, "cat; exit 4", client, stdin=True) for client in clients)
        )

        assert codes == [4] * 12
        assert [client.stdout for client in clients] == [b"%d" % n for n in range(12)]

    async def test_a_terminal_has_the_size_of_the_clients(self, rig: ContractRig) -> None:
        """From the first moment (or soon), and whenever it changes; errors come with the output."""
        ref, client = await rig.running(rig.pod()), ScriptedClient(sizes=[TerminalSize(132, 43)])
        script = "stty size; echo oops >&2; while :; do stty size; sleep 0.05; done"
        command = asyncio.create_task(_shell(rig, ref, script, client, stdin=True, tty=True))

        try:
            await client.stdout_has(b"43 132\r\noops" if rig.sizes_first else b"43 132")
            await client.stdout_has(b"oops")
            client.resize(TerminalSize(80, 24))
            await client.stdout_has(b"24 80")
        finally:
            await _cancelled(command)

        assert not client.stderr

    async def test_ctrl_c_interrupts_what_runs_in_front(self, rig: ContractRig) -> None:
        """As a terminal does."""
        ref, client = await rig.running(rig.pod()), ScriptedClient()
        script = 'trap "exit 7" INT; echo ready; while :; do sleep 0.05; done'
        command = asyncio.create_task(_shell(rig, ref, script, client, stdin=True, tty=True))
        await client.stdout_has(b"ready")

        client.type(b"\x03")

        async with asyncio.timeout(_DEADLINE_SECONDS):
            assert await command == 7

    async def test_commands_in_what_is_not_there_say_so(self, rig: ContractRig) -> None:
        """An instance, or a container of one."""
        ref = await rig.running(rig.pod())

        for where, container in ((_NOT_THERE, "main"), (ref, "nobody")):
            request = ExecRequest(container, ("true",))
            with pytest.raises(InstanceNotFoundError):
                await _executor(rig).exec(where, request, ScriptedClient())


class AttachContract:
    """Joining a container's own streams."""

    async def test_an_attached_client_sees_what_is_written_from_then_on(
        self, rig: ContractRig
    ) -> None:
        """However many are attached, each of them all of it."""
        ref = await rig.running(rig.pod())
        await rig.backend.write_log(ref, "main", "long before")

        async with _attached(rig, ref) as first, _attached(rig, ref) as second:
            await _heard(rig, ref, "from now on", first, second)

        assert b"long before" not in first.stdout + second.stdout

    async def test_a_container_outlives_those_who_were_attached(self, rig: ContractRig) -> None:
        """Leaving is not ending it."""
        ref = await rig.running(rig.pod())

        async with _attached(rig, ref):
            pass

        assert (await rig.shown(ref)).phase is InstancePhase.RUNNING
        async with _attached(rig, ref) as client:
            await _heard(rig, ref, "still here", client)

    async def test_an_attach_ends_with_its_container(self, rig: ContractRig) -> None:
        """After the last output, with the exit code if it is known."""
        ref, client = await rig.running(rig.pod()), ScriptedClient()
        attached = asyncio.create_task(_attach(rig, ref, client))
        await _heard(rig, ref, "listening", client)
        await rig.backend.write_log(ref, "main", "last words")

        await rig.backend.end_instance(ref, 3)

        async with asyncio.timeout(_DEADLINE_SECONDS):
            assert await attached in (3, None)
        assert client.stdout.endswith(b"last words\n")

    async def test_input_reaches_the_container_and_ends_once(self, rig: ContractRig) -> None:
        """With ``stdinOnce`` the first client's end of input is the container's. A backend whose
        containers have none says so."""
        if not rig.takes_input:
            await _refuses_input(rig)
            return
        fields = {"command": ["cat"], "args": [], "stdin": True, "stdinOnce": True}
        ref, client = await rig.running(_pod(rig, **fields)), ScriptedClient()
        attached = asyncio.create_task(_attach(rig, ref, client, stdin=True))
        client.type(b"said and heard\n")
        await client.stdout_has(b"said and heard\n")

        client.half_close()

        async with asyncio.timeout(_DEADLINE_SECONDS):
            assert await attached in (0, None)

    async def test_a_terminal_of_a_container_is_one_stream(self, rig: ContractRig) -> None:
        """It echoes, and Ctrl-C interrupts the container's own process."""
        if not rig.takes_input:
            await _refuses_input(rig, tty=True)
            return
        script = "echo oops >&2; while read line; do echo got $line; done"
        fields = {"command": ["sh", "-c", script], "args": [], "stdin": True, "tty": True}
        ref, client = await rig.running(_pod(rig, **fields)), ScriptedClient()
        attached = asyncio.create_task(_attach(rig, ref, client, stdin=True, tty=True))
        client.type(b"hello\n")
        await client.stdout_has(b"got hello\r\n")

        client.type(b"\x03")

        async with asyncio.timeout(_DEADLINE_SECONDS):
            assert await attached in (130, None)
        assert not client.stderr

    async def test_attaching_to_what_is_not_there_says_so(self, rig: ContractRig) -> None:
        """An instance, or a container of one."""
        ref = await rig.running(rig.pod())

        for where, container in ((_NOT_THERE, "main"), (ref, "nobody")):
            with pytest.raises(InstanceNotFoundError):
                await _attach(rig, where, ScriptedClient(), container=container)


def _executor(rig: ContractRig) -> SupportsExec:
    assert isinstance(rig.provider, SupportsExec)
    return rig.provider


def _pod(rig: ContractRig, **fields: Any) -> ResolvedPod:
    return replace(rig, container_fields={**rig.container_fields, **fields}).pod()


async def _shell(
    rig: ContractRig, ref: InstanceRef, script: str, client: ScriptedClient, **flags: bool
) -> int:
    request = ExecRequest("main", ("sh", "-c", script), **flags)
    return await _executor(rig).exec(ref, request, client)


async def _printed(rig: ContractRig, ref: InstanceRef, script: str) -> str:
    client = ScriptedClient()
    await _shell(rig, ref, script, client)
    return client.stdout.decode()


async def _attach(
    rig: ContractRig,
    ref: InstanceRef,
    client: ScriptedClient,
    container: str = "main",
    **flags: bool,
) -> int | None:
    assert isinstance(rig.provider, SupportsAttach)
    return await rig.provider.attach(ref, AttachRequest(container, **flags), client)


async def _refuses_input(rig: ContractRig, *, tty: bool = False) -> None:
    """Input that would go nowhere is refused with a sentence, and never swallowed."""
    ref = await rig.running(rig.pod())
    async with asyncio.timeout(_DEADLINE_SECONDS):
        with pytest.raises(NotSupportedError, match="input"):
            await _attach(rig, ref, ScriptedClient(b"unheard"), stdin=True, tty=tty)


@asynccontextmanager
async def _attached(rig: ContractRig, ref: InstanceRef) -> AsyncIterator[ScriptedClient]:
    client = ScriptedClient()
    attached = asyncio.create_task(_attach(rig, ref, client))
    await asyncio.sleep(0)
    try:
        yield client
    finally:
        await _cancelled(attached)


async def _heard(rig: ContractRig, ref: InstanceRef, text: str, *clients: ScriptedClient) -> None:
    """Let the container say something until all clients have it: nobody can tell from outside
    when a backend has joined them."""
    async with asyncio.timeout(_DEADLINE_SECONDS):
        while not all(text.encode() + b"\n" in client.stdout for client in clients):
            await rig.backend.write_log(ref, "main", text)
            await asyncio.sleep(0.1)


async def _cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(_DEADLINE_SECONDS):
        # What is waited for goes on in a process that can't tell us.
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
