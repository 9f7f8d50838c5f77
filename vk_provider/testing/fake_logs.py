"""The fake service's container logs.

Fed by the lines of a :class:`.fake_instance.FakeInstance`; feeds the fake provider's ``read_logs``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence

from vk_provider.faults import InstanceNotFoundError
from vk_provider.pods.types import InstanceRef, LogLine, LogOptions
from vk_provider.testing.fake_instance import FakeInstance
from vk_provider.testing.fake_service import FakeService


async def read_logs(
    backend: FakeService, ref: InstanceRef, container: str, options: LogOptions
) -> AsyncGenerator[LogLine, None]:
    """The lines of one container; with ``follow`` until it has ended and all is read."""
    backend.calls["logs"] += 1
    backend.script.check("logs")
    instance = backend.find(ref)
    if container not in (*instance.plan.containers, *instance.plan.init):
        raise InstanceNotFoundError(f"instance {ref.id} has no container {container}")
    with backend.watchers.open() as watcher:
        watcher.tell(ref.id, instance.changes_at)
        shown = 0
        while True:
            now = backend.clock()
            watcher.take(now)
            # Asked before the lines are read: what is written in between is read in a next round.
            is_over = _is_over(instance, now)
            lines = list(_lines(instance, container, now))
            for line in lines[shown:] if shown else _selected(lines, options):
                yield line
            shown = len(lines)
            if is_over or not options.follow:
                return
            await watcher.wait(backend.clock(), _next_line_at(instance, now))


def _is_over(instance: FakeInstance, now: float) -> bool:
    gone = instance.deleted_at is not None
    return gone or (instance.end is not None and instance.end.at <= now)


def _selected(lines: Sequence[LogLine], options: LogOptions) -> Sequence[LogLine]:
    if options.since is not None:
        lines = [line for line in lines if line.timestamp >= options.since]
    if options.tail_lines is not None:
        lines = lines[max(len(lines) - options.tail_lines, 0) :]
    return lines


def _lines(instance: FakeInstance, container: str, now: float) -> Iterator[LogLine]:
    found = list(_planned(instance, now))
    if found and container in instance.plan.openings:
        found.insert(1, (instance.starts_at, instance.plan.openings[container]))
    found += [(at, text) for at, name, text in instance.written if name == container]
    for at, text in sorted(found, key=lambda line: line[0]):
        yield LogLine(instance.wall_time(at), text)


def _planned(instance: FakeInstance, now: float) -> Iterator[tuple[float, bytes]]:
    """What a container writes by itself: that it started, and the lines it was told to write."""
    if instance.starts_at > now:
        return
    yield instance.starts_at, b"started"
    every = instance.plan.log_every_seconds
    stops = min(now, instance.end.at) if instance.end else now
    if every:
        for count in range(1, int((stops - instance.starts_at) / every) + 1):
            yield instance.starts_at + count * every, f"line {count}".encode()


def _next_line_at(instance: FakeInstance, now: float) -> float | None:
    every = instance.plan.log_every_seconds
    if not every or instance.starts_at > now:
        return None
    return instance.starts_at + (int((now - instance.starts_at) / every) + 1) * every
