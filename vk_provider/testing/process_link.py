"""The line to one instance's keeper: spawns it, sends requests, hands its events on.

No task and no thread: the loop calls back when an event has arrived. Also the folders: each is
locked as long as its keeper lives, so that what a killed one left can be swept.
Fed by :mod:`.process_instance`; speaks to :mod:`.process_keeper`.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from vk_provider.pods.types import Json

PREFIX = "vk-process-"
_KEEPER = Path(__file__).with_name("process_keeper.py")
_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to be started. ``container`` names whose guest it is; None: a container itself."""

    name: str
    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str] = field(repr=False)
    container: str | None = None
    tty: bool = False


class Link:
    """One keeper and the folder it owns.

    ``on_event`` gets each event as it came; ``on_end`` is called once, when the keeper has gone:
    with True if it went in order, with everything it kept.
    """

    def __init__(
        self,
        parent: Path,
        on_event: Callable[[Json], None],
        on_end: Callable[[bool], None],
    ) -> None:
        self.folder, lock = make_folder(parent)
        ours, theirs = socket.socketpair()
        try:
            self._process = _spawn(theirs.fileno(), lock, self.folder)
        except OSError:
            ours.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        finally:
            os.close(lock)
            theirs.close()
        self._socket = ours
        self._socket.setblocking(False)
        self._unsent: deque[tuple[bytes, list[int]]] = deque()
        self._text = b""
        self._on_event, self._on_end = on_event, on_end
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(ours, self._readable)

    @property
    def pid(self) -> int:
        """The keeper's process id."""
        return self._process.pid

    def start(self, launch: Launch, fds: Sequence[int]) -> None:
        """Start a process on three descriptors, which are the keeper's from now on."""
        request = {
            "op": "start",
            "name": launch.name,
            "container": launch.container,
            "argv": list(launch.argv),
            "env": dict(launch.env),
            "cwd": str(launch.cwd),
            "tty": launch.tty,
            "fds": len(fds),
        }
        self._send(request, fds)

    def kill(self, name: str) -> None:
        """Kill a process and its session."""
        self._send({"op": "kill", "name": name})

    def stop(self, grace_seconds: float) -> None:
        """SIGTERM to the containers, and SIGKILL to what is left after the grace."""
        self._send({"op": "stop", "grace": grace_seconds})

    def close(self) -> None:
        """Let the keeper kill everything, remove the folder and go."""
        self._drop_unsent()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def abandon(self) -> None:
        """The same at once, with nobody left to hear of it. Waits until the keeper has gone."""
        self._drop_unsent()
        if not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
        self._socket.close()
        self._process.wait()

    def _send(self, request: Json, fds: Sequence[int] = ()) -> None:
        # Descriptors are the caller's to close, and a request may have to wait for its turn.
        self._unsent.append((orjson.dumps(request) + b"\n", [os.dup(fd) for fd in fds]))
        if len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        while self._unsent:
            line, fds = self._unsent[0]
            try:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
                sent = self._socket.sendmsg([line], rights if fds else [])
            except BlockingIOError:
                self._loop.add_writer(self._socket, self._flush)
                return
            except OSError:
                # A keeper that is gone says so by itself: the socket's end is read.
                self._drop_unsent()
                return
            _close_all(fds)
            self._unsent[0] = (line[sent:], [])
            if sent == len(line):
                self._unsent.popleft()
        self._loop.remove_writer(self._socket)

    def _drop_unsent(self) -> None:
        if not self._loop.is_closed():
            self._loop.remove_writer(self._socket)
        for _, fds in self._unsent:
            _close_all(fds)
        self._unsent.clear()

    def _readable(self) -> None:
        try:
            text = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:
            text = b""
        *lines, self._text = (self._text + text).split(b"\n")
        for line in lines:
            self._on_event(orjson.loads(line))
        if not text:
            self._end()

    def _end(self) -> None:
        self._drop_unsent()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        in_order = self._process.wait() == 0
        self._on_end(in_order)


def _close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


def make_folder(parent: Path) -> tuple[Path, int]:
    """A new folder and the descriptor of its lock.

    It gets its final name only once the lock is held, so that no sweep takes it for a stray.
    """
    hidden = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=parent))
    lock = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    folder = hidden.with_name(hidden.name.removeprefix("."))
    hidden.rename(folder)
    return folder, lock


def sweep(parent: Path) -> list[Path]:
    """Remove the folders whose keepers were killed; return what was removed."""
    removed = []
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(folder)
            finally:
                os.close(lock)
    return removed


def _spawn(control: int, lock: int, folder: Path) -> subprocess.Popen[Any]:
    # Isolated and without site-packages: it starts in a few milliseconds and needs nothing else.
    argv = [sys.executable, "-I", "-S", str(_KEEPER), str(control), str(lock), str(folder)]
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(control, lock),
    )
