"""How much memory a process holds now, and the most since it was last asked to forget.

Fed by the kernel; feeds `crowd`.
"""

from __future__ import annotations

from pathlib import Path

_FORGET_PEAK = "5"


def memory_mib(pid: int) -> tuple[float, float]:
    """Resident memory now and at its peak, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.partition(":")[::2] for line in lines)
    now, peak = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, peak


def forget_peak(pid: int) -> None:
    """Begin a new peak from what is held now."""
    Path(f"/proc/{pid}/clear_refs").write_text(_FORGET_PEAK)
