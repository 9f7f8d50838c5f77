"""The fake service's container logs.

Fed by the lines of a :class:`.fake_instance.FakeInstance`; feeds the fake provider's ``read_logs``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from vk_provider.faults import InstanceNotFoundError
from vk_provider.pods.types import InstanceRef, LogLine, LogOptions
from vk_provider.testing.fake_instance import FakeInstance
from vk_provider.testing.fake_service import FakeBackend


async def read_logs(
    backend: FakeBackend, ref: InstanceRef, container: str, options: LogOptions
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
            lines = list(instance.lines(container, now))
            for line in lines[shown:] if shown else _selected(lines, options):
                yield line
            shown = len(lines)
            if is_over or not options.follow:
                return
            await watcher.wait(backend.clock(), instance.next_line_at(now))


def _is_over(instance: FakeInstance, now: float) -> bool:
    gone = instance.deleted_at is not None
    return gone or (instance.end is not None and instance.end.at <= now)


def _selected(lines: Sequence[LogLine], options: LogOptions) -> Sequence[LogLine]:
    if options.since is not None:
        lines = [line for line in lines if line.timestamp >= options.since]
    if options.tail_lines is not None:
        lines = lines[max(len(lines) - options.tail_lines, 0) :]
    return lines
