"""What local processes use, from /proc: processor time, memory, and the size of their folders.

A container is its own process, its guests, and whatever stems from them; what has left its family
tree (a daemon) counts for the session that it was born in, or for nobody.
Fed by a :class:`.process_instance.ProcessInstance`; feeds the provider's ``read_stats``.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from vk_provider.pods.types import Running, Stamp
from vk_provider.streams import ContainerStats, InstanceStats
from vk_provider.testing.process_container import Container
from vk_provider.testing.process_instance import ProcessInstance

_TICK_NANOSECONDS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_BLOCK_BYTES = 512


@dataclass(slots=True)
class Processes:
    """One look at all processes of the machine."""

    ticks: dict[int, int] = field(default_factory=dict)
    resident: dict[int, int] = field(default_factory=dict)
    children: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    sessions: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def look(cls) -> Processes:
        """What is there now."""
        seen = cls()
        for entry in os.listdir("/proc"):
            if entry.isdecimal():
                with suppress(OSError, ValueError):
                    seen._read(int(entry))
        return seen

    def _read(self, pid: int) -> None:
        text = Path(f"/proc/{pid}/stat").read_bytes()
        # The command's name stands in parentheses and may hold any byte. From here on the fields
        # are those of proc(5) from the third on.
        fields = text.rpartition(b")")[2].split()
        self.ticks[pid] = sum(int(each) for each in fields[11:15])
        self.resident[pid] = int(fields[21]) * _PAGE_BYTES
        self.children[int(fields[1])].append(pid)
        self.sessions[int(fields[3])].append(pid)

    def family(self, roots: list[int]) -> set[int]:
        """Some processes, their sessions' members, and everything that stems from those."""
        found: set[int] = set()
        waiting = [pid for root in roots for pid in (root, *self.sessions.get(root, ()))]
        while waiting:
            pid = waiting.pop()
            if pid in self.ticks and pid not in found:
                found.add(pid)
                waiting += self.children.get(pid, ())
        return found


def stats_of(instance: ProcessInstance, stamp: Stamp, processes: Processes) -> InstanceStats:
    """An instance's usage: that of its containers that run."""
    at = datetime.now(UTC)
    containers = tuple(
        _measure(instance, each, processes, at)
        for each in instance.containers.values()
        if isinstance(each.state, Running)
    )
    return InstanceStats(stamp.pod_uid, containers)


def _measure(
    instance: ProcessInstance, container: Container, processes: Processes, at: datetime
) -> ContainerStats:
    name = container.plan.name
    guests = (each for each in instance.guests.running.values() if each.container == name)
    roots = [pid for pid in (container.pid, *(each.pid for each in guests)) if pid is not None]
    family = processes.family(roots)
    busy = sum(processes.ticks[pid] for pid in family) * _TICK_NANOSECONDS
    busy += instance.guests.cpu_milliseconds[name] * 1_000_000
    # When a process ends whose time nobody has inherited, the sum falls, and the counter must not.
    container.cpu_nanoseconds = max(container.cpu_nanoseconds, busy)
    proportional = sum(_proportional(pid, processes.resident[pid]) for pid in family)
    return ContainerStats(
        name=name,
        at=at,
        started_at=container.state.started_at if isinstance(container.state, Running) else None,
        cpu_nanoseconds=container.cpu_nanoseconds,
        memory_working_set_bytes=proportional,
        memory_usage_bytes=proportional,
        memory_rss_bytes=sum(processes.resident[pid] for pid in family),
        filesystem_used_bytes=sum(_sizes(str(container.root))),
    )


def _proportional(pid: int, resident: int) -> int:
    """A process's memory, what it shares with others divided among them."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return resident


def _sizes(folder: str) -> Iterator[int]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                yield entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
                if entry.is_dir(follow_symlinks=False):
                    yield from _sizes(entry.path)
