"""The commands that run beside the containers' own processes.

Fed by exec sessions and by the keeper's events; feeds :mod:`.process_instance`.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace

from vk_provider.pods.types import Json
from vk_provider.testing.process_container import exit_code
from vk_provider.testing.process_link import Launch, Link

_NOT_FOUND = 127
_NOT_EXECUTABLE = 126
_KILLED = 128 + signal.SIGKILL


@dataclass(slots=True, eq=False)
class Guest:
    """A command in a container. ``failure``: why it never ran."""

    name: str
    container: str
    ended: asyncio.Future[int]
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    pid: int | None = None
    failure: str | None = None

    def end(self, code: int) -> None:
        """It is over."""
        self.begun.set()
        if not self.ended.done():
            self.ended.set_result(code)


class Guests:
    """All commands of one instance, and the processor time of those that ended."""

    def __init__(self) -> None:
        self.running: dict[str, Guest] = {}
        self.cpu_milliseconds: Counter[str] = Counter()
        self._count = 0

    def invite(self, link: Link, container: str, launch: Launch, fds: list[int]) -> Guest:
        """Start a command on three descriptors, which are its own from now on."""
        self._count += 1
        # A container's name holds no slash, so that the two can't be confused.
        name = f"{container}/{self._count}"
        guest = Guest(name, container, asyncio.get_running_loop().create_future())
        self.running[name] = guest
        link.start(replace(launch, name=name, container=container), fds)
        return guest

    def heard(self, event: Json) -> bool:
        """Whether an event is about a command; if so, it is taken in."""
        guest = self.running.get(event["name"])
        if guest is None:
            return False
        if event["event"] == "started":
            guest.pid = event["pid"]
            guest.begun.set()
            return True
        del self.running[guest.name]
        if event["event"] == "failed":
            guest.failure = event["error"]
            guest.end(_NOT_FOUND if event["errno"] == errno.ENOENT else _NOT_EXECUTABLE)
        else:
            self.cpu_milliseconds[guest.container] += round(event["cpu"] * 1000)
            guest.end(exit_code(event["status"]))
        return True

    def lose(self) -> None:
        """The keeper has gone, and all of them with it: if it was killed, by us. One that it had
        not yet told of is nobody's: its number died with the keeper."""
        for guest in self.running.values():
            if guest.pid is not None:
                _kill_session(guest.pid)
            guest.end(_KILLED)
        self.running.clear()


def _kill_session(leader: int) -> None:
    """Kill a command, unless it has ended and its number is somebody else's by now."""
    with suppress(ProcessLookupError, PermissionError):
        if os.getsid(leader) == leader:
            os.killpg(leader, signal.SIGKILL)
