"""One container of a process instance: its folder, its streams, and how its life goes.

Fed by the keeper's events through :mod:`.process_instance`; feeds observations and sessions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from vk_provider.pods.types import (
    ContainerState,
    Json,
    Running,
    Terminated,
    Waiting,
)
from vk_provider.testing.process_link import Launch, Link
from vk_provider.testing.process_log import ContainerLog
from vk_provider.testing.process_output import STDERR, STDOUT, Output
from vk_provider.testing.process_pipe import Pipe
from vk_provider.testing.process_plan import ContainerPlan, Role

_START_FAILED = 128
_SIGNALLED = 128


@dataclass(slots=True, eq=False)
class Container:
    """A container, from its plan to its end."""

    plan: ContainerPlan
    root: Path
    env: Mapping[str, str] = field(repr=False)
    state: ContainerState = field(default_factory=lambda: Waiting("ContainerCreating"))
    is_launched: bool = False
    pid: int | None = None
    output: Output | None = None
    stdin: Pipe | None = None
    cpu_nanoseconds: int = 0

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return isinstance(self.state, Terminated)

    @property
    def is_alive(self) -> bool:
        """Whether a process of it is or may be there."""
        return self.is_launched and not self.is_over

    @property
    def cwd(self) -> Path:
        """Where its processes start."""
        return self.root / self.plan.working_dir[1:]

    def launch(self, link: Link, log: ContainerLog) -> None:
        """Order its start, on streams of its own."""
        self.is_launched = True
        self.output = Output(log)
        open_streams = _open_terminal if self.plan.tty else _open_pipes
        self.stdin, theirs = open_streams(self.plan, self.output)
        launch = Launch(self.plan.name, self.plan.argv, self.cwd, self.env, tty=self.plan.tty)
        with handed_over(theirs):
            link.start(launch, theirs)

    def started(self, event: Json) -> None:
        """It runs."""
        self.pid = event["pid"]
        self.state = Running(moment(event["at"]))

    def failed(self, event: Json) -> None:
        """It could not be started, as with a command that isn't there."""
        self.state = Terminated(
            exit_code=_START_FAILED,
            reason="StartError",
            message=f'exec: "{self.plan.argv[0]}": {event["error"]}',
            finished_at=moment(event["at"]),
        )
        self._finish()

    def exited(self, event: Json) -> None:
        """It ran and ended."""
        code = exit_code(event["status"])
        self.state = Terminated(
            exit_code=code,
            reason="Error" if code else "Completed",
            signal=-event["status"] if event["status"] < 0 else None,
            started_at=self.state.started_at if isinstance(self.state, Running) else None,
            finished_at=moment(event["at"]),
        )
        self._finish()

    def lost(self, at: datetime) -> None:
        """Its keeper was killed, and it with it: nobody saw how."""
        if self.is_alive:
            started = self.state.started_at if isinstance(self.state, Running) else None
            self.state = Terminated(started_at=started, finished_at=at)
        self.close()

    def close(self) -> None:
        """Let go of its streams."""
        if self.output is not None:
            self.output.close()
        self.close_stdin()

    def close_stdin(self) -> None:
        """No input will come any more."""
        if self.stdin is not None:
            self.stdin.close()
            self.stdin = None

    def _finish(self) -> None:
        if self.output is not None:
            self.output.finish(self.plan.tty)
        self.close_stdin()


def _open_pipes(plan: ContainerPlan, output: Output) -> tuple[Pipe | None, list[int]]:
    """Our end of stdin, and the three ends that are the process's."""
    stdin, theirs = None, []
    if plan.stdin:
        reading, writing = os.pipe()
        stdin = Pipe(writing)
        theirs.append(reading)
    else:
        theirs.append(os.open(os.devnull, os.O_RDONLY))
    for stream in (STDOUT, STDERR):
        reading, writing = os.pipe()
        output.connect(reading, stream)
        theirs.append(writing)
    return stdin, theirs


def _open_terminal(plan: ContainerPlan, output: Output) -> tuple[Pipe | None, list[int]]:
    """The same where all three are one terminal, which echoes whether it is typed into or not."""
    ours, theirs = os.openpty()
    stdin = Pipe(os.dup(ours))
    output.connect(ours, STDOUT)
    return stdin, [theirs, os.dup(theirs), os.dup(theirs)]


@contextmanager
def handed_over(fds: list[int]) -> Iterator[None]:
    """Close our copies of descriptors that the block hands to somebody else."""
    try:
        yield
    finally:
        for fd in fds:
            os.close(fd)


def exit_code(status: int) -> int:
    """A process's end as a shell tells it: 128 + N for signal N."""
    return _SIGNALLED - status if status < 0 else status


def moment(at: float) -> datetime:
    """A time of the keeper's clock."""
    return datetime.fromtimestamp(at, UTC)


def in_order(containers: Mapping[str, Container]) -> Iterator[Container]:
    """Those whose turn to start has come and who have not been started."""
    for container in containers.values():
        if not container.is_launched:
            yield container
        if container.plan.role is Role.INIT:
            if not (isinstance(container.state, Terminated) and container.state.exit_code == 0):
                return
        elif container.plan.role is Role.SIDECAR and isinstance(container.state, Waiting):
            return
