"""One container of a process instance: its folder, its streams, and how its life goes.

A container's root is a folder; the process starts in it (or in ``workingDir`` below it), and HOME
and TMPDIR point into it, so that relative paths stay in the container. Absolute paths are the
machine's: nothing is isolated.
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
    ContainerObservation,
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
    def is_sidecar(self) -> bool:
        """Whether it runs beside the others and does not count for the instance's end."""
        return self.plan.role is Role.SIDECAR

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

    def lay_out(self, volumes: Path) -> None:
        """Make its folder: the shared folders, the files, the places it expects."""
        self.root.mkdir(parents=True)
        for path, folder in sorted(self.plan.folders.items()):
            shared, place = volumes / folder, self.root / path[1:]
            shared.mkdir(parents=True, exist_ok=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(shared, target_is_directory=True)
        for file in self.plan.files:
            place = self.root / file.path[1:]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.content)
            # Its owner must be able to read it: the mode is meant for root's files.
            place.chmod(file.mode | 0o400)
        for place in (self.cwd, self.root / "tmp"):
            place.mkdir(parents=True, exist_ok=True)

    def launch(self, link: Link, log: ContainerLog) -> None:
        """Order its start, on streams of its own."""
        self.is_launched = True
        self.output = Output(log)
        theirs = self._terminal(self.output) if self.plan.tty else self._pipes(self.output)
        launch = Launch(self.plan.name, self.plan.argv, self.cwd, self.env, tty=self.plan.tty)
        with handed_over(theirs):
            link.start(launch, theirs)

    def _pipes(self, output: Output) -> list[int]:
        theirs = []
        if self.plan.stdin:
            reading, writing = os.pipe()
            self.stdin = Pipe(writing)
            theirs.append(reading)
        else:
            theirs.append(os.open(os.devnull, os.O_RDONLY))
        for stream in (STDOUT, STDERR):
            reading, writing = os.pipe()
            output.connect(reading, stream)
            theirs.append(writing)
        return theirs

    def _terminal(self, output: Output) -> list[int]:
        ours, theirs = os.openpty()
        self.stdin = Pipe(os.dup(ours))
        output.connect(ours, STDOUT)
        return [theirs, os.dup(theirs), os.dup(theirs)]

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

    def observe(self, instance: str) -> ContainerObservation:
        """It as a list shows it."""
        was_there = self.pid is not None
        return ContainerObservation(
            name=self.plan.name,
            state=self.state,
            image=self.plan.image if was_there else None,
            container_id=f"process://{instance}/{self.plan.name}" if was_there else None,
        )


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
        elif container.is_sidecar and isinstance(container.state, Waiting):
            return
