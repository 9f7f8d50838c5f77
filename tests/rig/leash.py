"""The parent of all processes of one test bed, and the owner of its temp folder.

A program of its own, standard library only, started as `python -I leash.py`. It ends when told
to, or when its stdin closes or its parent changes: so however the test run ends, SIGKILL
included, the processes stop in order and the folder goes. Children carry a parent-death signal
in case the leash itself is killed; the folder left then is swept by the next leash that starts.

Protocol: JSON lines. First the leash says `{"folder": path}`. Requests carry an `id` and an `op`
(`start`, `signal`, `stop`, `wait`, `close`); each is answered once, out of order, by
`{"id": …, …result}` or `{"id": …, "error": text}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # Isolated mode leaves the program's own folder off the path; put the repository there.
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.rig.deathsig import die_with_parent

PREFIX = "vk-rig-"
_LOCK = ".leash"
_PARENT_CHECK_SECONDS = 0.5
_LAST_STAGE = 9
_MNT_DETACH = 2


def make_folder() -> tuple[Path, int]:
    """Make the bed's folder; return it and the descriptor of its lock, held while we live.

    It gets its final name only once the lock is held, so that no sweep takes it for a stray.
    """
    hidden = Path(tempfile.mkdtemp(prefix=f".{PREFIX}"))
    lock = os.open(hidden / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    folder = hidden.with_name(hidden.name.removeprefix("."))
    hidden.rename(folder)
    return folder, lock


def sweep(temp: Path) -> list[Path]:
    """Remove the folders of leashes that were killed; return what was removed."""
    removed = []
    for lock in temp.glob(f"{PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError), lock.open("r+") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(lock.parent)
            removed.append(lock.parent)
    return removed


def remove(folder: Path) -> None:
    """Remove a bed's folder, but nothing that is mounted in it: a kubelet's volumes, for one."""
    for mounted in reversed(mounts_below(folder, _mounts())):
        _umount(mounted)
    if not mounts_below(folder, _mounts()):
        shutil.rmtree(folder, ignore_errors=True)


def mounts_below(folder: Path, mountinfo: str) -> list[str]:
    """Where something is mounted below a folder, in the order of mounting."""
    fields = [line.split() for line in mountinfo.splitlines()]
    points = [each[4].encode().decode("unicode_escape") for each in fields]
    return [point for point in points if point.startswith(f"{folder}/")]


def _mounts() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text()
    except OSError:
        return ""  # no Linux: nobody mounts anything there


def _umount(point: str) -> None:
    # Detached: what a process of the bed still holds open goes with that process.
    ctypes.CDLL(None).umount2(point.encode(), _MNT_DETACH)


class Child:
    """One process: started at once, its log appended to a file."""

    def __init__(self, process: asyncio.subprocess.Process, stage: int) -> None:
        self.process = process
        self.stage = stage

    @classmethod
    async def start(cls, request: dict[str, Any]) -> Child:
        """Start the process that a `start` request asks for."""
        with Path(request["log"]).open("ab") as log:  # noqa: ASYNC230 - one local open
            process = await asyncio.create_subprocess_exec(
                *request["argv"],
                env=request["env"],
                cwd=request["cwd"],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a group of its own: Ctrl-C is the leash's business
                preexec_fn=die_with_parent(),
            )
        return cls(process, int(request["stage"]))

    @property
    def alive(self) -> bool:
        """Whether it has not been reaped yet."""
        return self.process.returncode is None

    def signal(self, signum: int) -> None:
        """Signal its whole process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signum)

    async def stop(self, signum: int, grace: float) -> int:
        """Signal it, kill it after the grace period; return the exit code."""
        if self.alive:
            self.signal(signum)
            try:
                async with asyncio.timeout(grace):
                    await self.process.wait()
            except TimeoutError:
                self.signal(signal.SIGKILL)
        code = await self.process.wait()
        self.signal(signal.SIGKILL)  # what it may have started itself and left behind
        return code


class Leash:
    """All children by name, and what the protocol can ask of them."""

    def __init__(self) -> None:
        self.children: dict[str, Child] = {}
        self._starting = asyncio.Lock()

    async def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry out one request; never raises."""
        try:
            match request["op"]:
                case "start":
                    result = await self._start(request)
                case "signal":
                    result = self._signal(request)
                case "stop":
                    child = self._child(request)
                    code = await child.stop(request["signal"], request["grace"])
                    result = {"code": code}
                case "wait":
                    result = {"code": await self._child(request).process.wait()}
                case unknown:
                    raise ValueError(f"unknown operation {unknown!r}")
        except (OSError, ValueError, KeyError) as error:
            return {"id": request.get("id"), "error": f"{type(error).__name__}: {error}"}
        return {"id": request["id"]} | result

    async def stop_all(self, grace: float) -> None:
        """Stop every child, the highest stage first (an API server hangs without its etcd)."""
        async with self._starting:  # a child being started would be missed
            for stage in range(_LAST_STAGE, -1, -1):
                chosen = [child for child in self.children.values() if child.stage == stage]
                await asyncio.gather(*(child.stop(signal.SIGTERM, grace) for child in chosen))

    async def _start(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request["name"]
        async with self._starting:
            if name in self.children and self.children[name].alive:
                raise ValueError(f"{name} runs already")
            self.children[name] = await Child.start(request)
        return {"pid": self.children[name].process.pid}

    def _signal(self, request: dict[str, Any]) -> dict[str, Any]:
        child = self._child(request)
        if not child.alive:
            raise ValueError(f"{request['name']} has ended: {child.process.returncode}")
        child.signal(request["signal"])
        return {}

    def _child(self, request: dict[str, Any]) -> Child:
        if request["name"] not in self.children:
            raise ValueError(f"{request['name']} was never started")
        return self.children[request["name"]]


async def _serve(leash: Leash, parent: int) -> None:
    """Answer requests until told to close, signalled, orphaned, or stdin ends."""
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(signum, over.set)
    tasks = {
        asyncio.create_task(over.wait()),
        asyncio.create_task(_until_orphaned(parent)),
        asyncio.create_task(_read(leash)),
    }
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _until_orphaned(parent: int) -> None:
    """Return when our parent is gone: a fork of it may still hold the pipe open."""
    while os.getppid() == parent:  # noqa: ASYNC110 - the kernel tells nobody
        await asyncio.sleep(_PARENT_CHECK_SECONDS)


async def _read(leash: Leash) -> None:
    """Serve stdin until its end or a `close`."""
    reader = asyncio.StreamReader(limit=2**24)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    running: set[asyncio.Task[None]] = set()
    while line := await reader.readline():
        request = json.loads(line)
        if request["op"] == "close":
            return
        task = asyncio.create_task(_answer(leash, request))
        running.add(task)
        task.add_done_callback(running.discard)


async def _answer(leash: Leash, request: dict[str, Any]) -> None:
    _say(await leash.handle(request))


def _say(message: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody listens any more: stdin's end follows
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


async def main(parent: int, grace: float) -> None:
    """Hold the folder and the children until the end, then stop and remove everything."""
    sweep(Path(tempfile.gettempdir()))
    folder, lock = make_folder()
    leash = Leash()
    try:
        _say({"folder": str(folder)})
        await _serve(leash, parent)
    finally:
        await leash.stop_all(grace)
        remove(folder)
        os.close(lock)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
