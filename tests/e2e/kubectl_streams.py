"""kubectl as a person runs it, its bytes untouched: pipes, a terminal, and its choice of protocol.

Feeds the end-to-end tests of streams.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import termios
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.e2e.workloads import Workloads
from tests.rig.access import kubectl_path
from tests.rig.deathsig import die_with_parent

WEBSOCKET: Mapping[str, str] = {
    "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "true",
    "KUBECTL_PORT_FORWARD_WEBSOCKETS": "true",
}
SPDY: Mapping[str, str] = dict.fromkeys(WEBSOCKET, "false")


@dataclass(frozen=True)
class Answer:
    """What a finished kubectl said."""

    code: int
    out: bytes
    err: str


class Kubectl:
    """Runs kubectl in the namespace of a test, over one of the two protocols."""

    def __init__(self, workloads: Workloads, protocol: Mapping[str, str] = WEBSOCKET) -> None:
        bed = workloads.bed
        self._command = [kubectl_path(), "-n", workloads.namespace]
        self._environment = {
            **os.environ,
            **protocol,
            "KUBECONFIG": str(bed.kubeconfig),
            "KUBECACHEDIR": str(bed.folder / "kubectl-cache"),
            "TERM": "xterm",
        }

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        """A running kubectl; its streams are pipes."""
        return await self._start(arguments, die_with_parent(), asyncio.subprocess.PIPE)

    async def start_at(self, terminal: int, *arguments: str) -> asyncio.subprocess.Process:
        """A running kubectl whose terminal this is."""
        leash = die_with_parent()

        def take_terminal() -> None:
            if leash is not None:
                leash()
            # Only to the leader of a session does a terminal tell that it was resized.
            os.setsid()
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

        return await self._start(arguments, take_terminal, terminal)

    async def _start(
        self, arguments: Sequence[str], first: Callable[[], object] | None, streams: int
    ) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._command,
            *arguments,
            env=self._environment,
            preexec_fn=first,
            stdin=streams,
            stdout=streams,
            stderr=streams,
        )

    async def run(self, *arguments: str, input: bytes = b"", seconds: float = 60) -> Answer:
        """Run it to its end."""
        process = await self.start(*arguments)
        try:
            async with asyncio.timeout(seconds):
                out, err = await process.communicate(input)
        finally:
            await end(process)
        return Answer(process.returncode or 0, out, err.decode(errors="replace"))


async def end(process: asyncio.subprocess.Process) -> None:
    """Kill what still runs."""
    if process.returncode is None:
        process.kill()
        await process.wait()


class Terminal:
    """kubectl at a terminal of its own."""

    def __init__(self, ours: int, process: asyncio.subprocess.Process) -> None:
        self._ours = ours
        self._process = process
        self.screen = ""

    def resize(self, columns: int, rows: int) -> None:
        """Drag the window's corner."""
        set_size(self._ours, columns, rows)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    async def insist(self, keys: Sequence[str], text: str, seconds: float = 30) -> None:
        """Press keys, as often as it takes until a text is on the screen: a shell that is just
        starting a command may lose what comes in that moment, as for a person."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while text not in self.screen:
            for key in keys:
                self.type(key)
                await asyncio.sleep(0.1)
            try:
                await self.until(text, 3)
            except AssertionError:
                if loop.time() > deadline:
                    raise
            else:
                return

    async def until(self, text: str, seconds: float = 20) -> None:
        """Wait until a text is on the screen that was not there before; forget what came before."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while text not in self.screen:
            assert loop.time() < deadline, f"no {text!r} on the screen: {self.screen!r}"
            try:
                self.screen += os.read(self._ours, 65536).decode(errors="replace")
            except BlockingIOError:
                await asyncio.sleep(0.02)
            except OSError:
                raise AssertionError(f"no {text!r}, kubectl ended: {self.screen!r}") from None
        self.screen = self.screen.partition(text)[2]

    async def code(self, seconds: float = 20) -> int:
        """Wait for kubectl's end."""
        async with asyncio.timeout(seconds):
            return await self._process.wait()


def set_size(descriptor: int, columns: int, rows: int) -> None:
    """Tell a terminal its size."""
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@asynccontextmanager
async def terminal(kubectl: Kubectl, *arguments: str) -> AsyncIterator[Terminal]:
    """kubectl at a terminal of 80 columns and 24 rows."""
    ours, theirs = pty.openpty()
    set_size(ours, 80, 24)
    os.set_blocking(ours, False)
    process = await kubectl.start_at(theirs, *arguments)
    os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        await end(process)
        os.close(ours)


async def sit_at(shell: Terminal) -> None:
    """What a person does at `sh -i`: its first size and a new one, Ctrl-C for the program alone,
    and an exit code of 3."""
    shell.type("PS1=; stty size | sed 's/^/size /'\r")
    await shell.until("size 24 80")
    shell.resize(100, 40)
    shell.type("sleep 0.5; stty size | sed 's/^/size /'\r")
    await shell.until("size 40 100")
    shell.type("echo go; sleep 300; echo not-this-$?\r")
    await shell.until("\ngo")
    await shell.insist(["\x03", "echo code-$((1+1))\r"], "code-2")
    shell.type("exit 3\r")
    assert await shell.code() == 3
