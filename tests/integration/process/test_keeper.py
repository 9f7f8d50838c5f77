"""The keeper's protocol, spoken to the program itself."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.integration.process.conftest import is_alive
from vk_provider.testing import process_keeper

SCRIPT = ("sh", "-c", "trap '' TERM; sleep 1000 & wait; wait")


class Line:
    """One keeper and the socket to it."""

    def __init__(self, folder: Path) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(30)
        lock = os.open(folder, os.O_RDONLY)
        arguments = [str(theirs.fileno()), str(lock), str(folder)]
        # Not isolated, as the product starts it, so that its lines are counted as run.
        argv = [sys.executable, process_keeper.__file__, *arguments]
        self.process = subprocess.Popen(argv, pass_fds=(theirs.fileno(), lock))
        theirs.close()
        os.close(lock)
        self.socket = ours
        self.reader = ours.makefile()

    def say(self, text: bytes, fds: list[int] | None = None) -> None:
        """Send bytes, with descriptors."""
        if fds:
            socket.send_fds(self.socket, [text], fds)
        else:
            self.socket.sendall(text)

    def start(self, name: str, argv: tuple[str, ...], **fields: Any) -> None:
        """Send a start on the null device."""
        request: dict[str, Any] = {"op": "start", "name": name, "argv": argv, "env": {}}
        request |= {"container": None, "cwd": "/", "tty": False, "fds": 3} | fields
        null = os.open(os.devnull, os.O_RDWR)
        self.say(json.dumps(request).encode() + b"\n", [null] * 3)
        os.close(null)

    def hear(self) -> dict[str, Any]:
        """The next event; empty when the keeper has gone."""
        text = self.reader.readline()
        return json.loads(text) if text else {}


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    """A keeper of a folder with something in it."""
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "file").write_text("x")
    line = Line(folder)
    try:
        yield line
    finally:
        with suppress(OSError):
            line.socket.shutdown(socket.SHUT_RDWR)
        line.reader.close()
        line.socket.close()
        assert line.process.wait(30) == 0
    assert not folder.exists()


def test_a_process_is_told_from_start_to_end(line: Line) -> None:
    """With its id, its status and the times of both."""
    line.start("one", ("/bin/sh", "-c", "exit 4"))

    started, exited = line.hear(), line.hear()

    assert (started["event"], exited["event"], exited["status"]) == ("started", "exited", 4)
    assert started["at"] <= exited["at"]
    assert exited["cpu"] >= 0


def test_what_can_not_be_started_is_told(line: Line) -> None:
    """In the system's words."""
    line.start("one", ("/no/such/command",))
    line.start("two", ("/bin/true", "\0"))

    missing, garbled = line.hear(), line.hear()

    assert (missing["event"], missing["error"]) == ("failed", "No such file or directory")
    assert (garbled["event"], garbled["errno"]) == ("failed", None)


def test_requests_may_come_in_pieces(line: Line) -> None:
    """Bytes are a stream; descriptors belong to the request that counts them."""
    text = (
        b'{"op": "start", "name": "one", "container": null, "argv": ["/bin/true"], "env": {}, '
        b'"cwd": "/", "tty": false, "fds": 3}\n'
    )
    null = os.open(os.devnull, os.O_RDWR)

    line.say(text[:20], [null] * 3)
    line.say(text[20:])

    assert line.hear()["event"] == "started"
    os.close(null)


def test_a_stop_kills_what_stays(line: Line) -> None:
    """After the grace, with everything that it had started."""
    line.start("one", SCRIPT)
    line.start("guest", SCRIPT, container="one")
    pids = [line.hear()["pid"], line.hear()["pid"]]

    line.say(b'{"op": "stop", "grace": 0.2}\n')

    assert {line.hear()["status"], line.hear()["status"]} == {-signal.SIGKILL}
    assert not any(is_alive(pid) for pid in pids)


def test_a_guest_is_killed_alone(line: Line) -> None:
    """Its container runs on; and once that ends, its other guests end with it."""
    line.start("one", SCRIPT)
    line.start("guest", SCRIPT, container="one")
    line.start("other", SCRIPT, container="one")
    first, _, _ = line.hear(), line.hear(), line.hear()

    line.say(b'{"op": "kill", "name": "guest"}\n')
    assert line.hear()["name"] == "guest"
    assert is_alive(first["pid"])
    os.kill(first["pid"], signal.SIGKILL)

    assert {line.hear()["name"], line.hear()["name"]} == {"one", "other"}


def test_the_end_of_the_socket_ends_everything(line: Line) -> None:
    """What runs, and the folder: the fixture looks for it."""
    line.start("one", SCRIPT)
    pid = line.hear()["pid"]

    line.socket.shutdown(socket.SHUT_WR)

    assert line.process.wait(30) == 0
    assert not is_alive(pid)


def test_sigterm_ends_everything_too(line: Line) -> None:
    """In the same order."""
    line.start("one", SCRIPT)
    pid = line.hear()["pid"]

    line.process.terminate()

    assert line.process.wait(30) == 0
    assert not is_alive(pid)
