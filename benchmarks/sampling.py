"""What a process has used so far, from /proc. Fed by the kernel; feeds `measure`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_UTIME, _STIME = 11, 12
"""Fields of /proc/PID/stat, counted after the program's name, which may contain anything."""


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds (user and system) since the process began, and the most memory it ever had."""

    cpu_seconds: float
    peak_rss_mib: float


def usage(pid: int) -> Usage:
    """Return what a process and its threads have used up to now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    ticks = int(fields[_UTIME]) + int(fields[_STIME])
    return Usage(ticks / _TICK, _peak(Path(f"/proc/{pid}/status").read_text()))


def _peak(status: str) -> float:
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0
