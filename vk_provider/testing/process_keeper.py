"""The keeper: parent of all processes of one instance, and owner of its folder.

A program of its own, standard library only, started as ``python -I -S process_keeper.py CONTROL
LOCK FOLDER``: two inherited descriptors and a path. Whoever started it may die as it likes: when
the control socket closes, the keeper kills everything that stems from the instance, daemons
included (it is their subreaper), removes the folder and goes. Should the keeper itself be killed,
the containers' own processes die with it, and the next service sweeps the unlocked folder.

Requests, as JSON lines with the descriptors they speak of beside them:
``{"op": "start", "name", "container", "argv", "env", "cwd", "tty", "fds": 3}`` (``container`` is
null for a container's own process, else whose guest the command is),
``{"op": "kill", "name"}`` and ``{"op": "stop", "grace"}``.
Events: ``started`` (pid, at), ``failed`` (error, errno, at), ``exited`` (status, at, cpu).
Fed by, and feeds, :mod:`.process_link`.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_TIOCSCTTY = 0x540E
_PARENT_CHECK_SECONDS = 2.0
_PASSES = 50
_READ_BYTES = 1 << 16
_MAX_FDS = 3


@dataclass(slots=True)
class Member:
    """A process that was asked for: a container's own, or a command run beside it."""

    name: str
    container: str | None
    process: subprocess.Popen[bytes]


def processes() -> Iterator[tuple[int, int, int]]:
    """Every live process: its id, its parent's, its session's."""
    for entry in os.listdir("/proc"):
        if not entry.isdecimal():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:
            # The command's name stands in parentheses and may hold any byte.
            state, parent, _group, session = file.read().rpartition(b")")[2].split()[:4]
            if state not in (b"Z", b"X"):
                yield int(entry), int(parent), int(session)


def kill_session(session: int) -> None:
    """Kill whatever runs in a session, until nothing does. Its leader need not live."""
    for _ in range(_PASSES):
        found = [pid for pid, _parent, its in processes() if its == session]
        for pid in found:
            _kill(pid, signal.SIGKILL)
        if not found:
            return


def _kill(pid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signum)


class Keeper:
    """The processes of one instance, and what the protocol can ask about them."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.members: dict[int, Member] = {}
        self.deadline: float | None = None
        self._prctl = ctypes.CDLL(None).prctl
        self._prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def start(self, request: dict[str, Any], fds: list[int]) -> None:
        """Start a process in a session of its own, on the descriptors that came along."""
        name, at = request["name"], time.time()
        try:
            process = subprocess.Popen(
                request["argv"],
                env=request["env"],
                cwd=request["cwd"],
                stdin=fds[0],
                stdout=fds[1],
                stderr=fds[2],
                start_new_session=True,
                preexec_fn=self._preparation(request),
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            number = getattr(error, "errno", None)
            words = os.strerror(number) if number else str(error)
            self.tell("failed", name, at=at, error=words, errno=number)
        else:
            self.members[process.pid] = Member(name, request["container"], process)
            self.tell("started", name, at=at, pid=process.pid)
        finally:
            for fd in fds:
                os.close(fd)

    def _preparation(self, request: dict[str, Any]) -> Callable[[], None] | None:
        """What a process does before its program, which takes a whole copy of us to do it in. A
        command waits for its first byte, and whoever sent it kills it if we are killed."""
        is_command = request["container"] is not None and not request["tty"]
        return None if is_command else self._prepare(request["tty"])

    def _prepare(self, tty: bool) -> Callable[[], None]:
        keeper, prctl, ioctl = os.getpid(), self._prctl, ctypes.CDLL(None).ioctl

        def prepare() -> None:
            prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if tty:
                ioctl(0, _TIOCSCTTY, 0)
            if os.getppid() != keeper:  # it died before the line above: no signal would come
                os._exit(1)

        return prepare

    def kill(self, name: str) -> None:
        """Kill a process and everything in its session."""
        for pid, member in self.members.items():
            if member.name == name:
                kill_session(pid)

    def stop(self, grace: float) -> None:
        """Ask the containers to end, and kill what is left after ``grace`` seconds."""
        due = time.monotonic() + grace
        self.deadline = due if self.deadline is None else min(self.deadline, due)
        for pid, member in self.members.items():
            if member.container is None:
                _kill(pid, signal.SIGTERM)

    def reap(self) -> None:
        """Report what has ended, and end what may not outlive it."""
        while True:
            try:
                # Only looked at: while it is not reaped, its number can't be anybody else's.
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            self._bury(found.si_pid)

    def _bury(self, pid: int) -> None:
        member = self.members.get(pid)
        if member is not None and member.container is None:
            self._kill_with(pid, member.name)
        at = time.time()
        _, status, usage = os.wait4(pid, 0)
        if member is None:
            return
        del self.members[pid]
        code = os.waitstatus_to_exitcode(status)
        member.process.returncode = code
        self.tell("exited", member.name, at=at, status=code, cpu=usage.ru_utime + usage.ru_stime)

    def _kill_with(self, pid: int, container: str) -> None:
        """What a container's own process takes with it: its session and its guests."""
        kill_session(pid)
        for guest, member in self.members.items():
            if member.container == container:
                kill_session(guest)

    def enforce(self) -> None:
        """After a stop: once its containers or its time are over, nothing may be left."""
        if self.deadline is None:
            return
        running = any(member.container is None for member in self.members.values())
        if not running or time.monotonic() >= self.deadline:
            self.deadline = None
            self.kill_all()

    def kill_all(self) -> None:
        """Kill every descendant: orphans come to us, so our children are all there is."""
        me = os.getpid()
        while True:
            for pid in [pid for pid, parent, _ in processes() if parent == me]:
                _kill(pid, signal.SIGKILL)
            try:
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            except ChildProcessError:
                return
            self.reap()

    def tell(self, event: str, name: str, **facts: Any) -> None:
        """Say what happened; if nobody listens any more, the socket's end follows."""
        line = json.dumps({"event": event, "name": name, **facts}) + "\n"
        with contextlib.suppress(OSError):
            self.control.sendall(line.encode())


class Requests:
    """The requests that have arrived, each with its descriptors."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._text = b""
        self._fds: list[int] = []

    def receive(self) -> Iterator[tuple[dict[str, Any], list[int]]]:
        """What is complete by now. Raises ``EOFError`` when no more will come."""
        fds = array.array("i")
        space = socket.CMSG_SPACE(_MAX_FDS * fds.itemsize)
        text, ancillary, _flags, _address = self._control.recvmsg(_READ_BYTES, space)
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
        if not text:
            raise EOFError
        self._fds += fds
        *lines, self._text = (self._text + text).split(b"\n")
        for line in lines:
            request = json.loads(line)
            count = request.get("fds", 0)
            mine, self._fds = self._fds[:count], self._fds[count:]
            yield request, mine


def serve(keeper: Keeper, requests: Requests, wakeups: int) -> None:
    """Carry out requests until the socket closes, a signal comes, or the parent is gone."""
    parent = os.getppid()
    poll = select.poll()
    poll.register(keeper.control, select.POLLIN)
    poll.register(wakeups, select.POLLIN)
    while os.getppid() == parent:
        wait = _PARENT_CHECK_SECONDS
        if keeper.deadline is not None:
            wait = min(wait, max(0.0, keeper.deadline - time.monotonic()))
        ready = {fd for fd, _ in poll.poll(wait * 1000)}
        if wakeups in ready and signal.SIGTERM in os.read(wakeups, 512):
            return
        keeper.reap()
        keeper.enforce()
        if keeper.control.fileno() in ready:
            try:
                for request, fds in requests.receive():
                    _carry_out(keeper, request, fds)
            except (EOFError, ConnectionError):
                return


def _carry_out(keeper: Keeper, request: dict[str, Any], fds: list[int]) -> None:
    if request["op"] == "start":
        keeper.start(request, fds)
    elif request["op"] == "kill":
        keeper.kill(request["name"])
    else:
        keeper.stop(request["grace"])


def main(control_fd: int, lock_fd: int, folder: str) -> None:
    """Keep one instance until its end."""
    for fd in (control_fd, lock_fd):
        os.set_inheritable(fd, False)
    os.setsid()  # Ctrl-C at a terminal is meant for whoever started us
    for signum in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        # What is ignored stays so across exec: a container would never hear of its Ctrl-C.
        signal.signal(signum, signal.SIG_DFL)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for signum in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(signum, lambda *_: None)
    signal.set_wakeup_fd(writing)
    with socket.socket(fileno=control_fd) as control:
        keeper = Keeper(control)
        try:
            serve(keeper, Requests(control), reading)
        finally:
            keeper.kill_all()
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
