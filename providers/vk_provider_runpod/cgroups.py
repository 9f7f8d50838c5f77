"""What a container uses, as its own cgroup and its GPUs' driver tell it from inside.

Pure. RunPod's list tells percentages; only the container itself has counters and bytes.
Fed by ``measuring`` with what a script printed; feeds ``stats``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

SCRIPT = (
    "cd /sys/fs/cgroup/ && for each in cpu.stat memory.current memory.stat cpuacct/cpuacct.usage "
    "memory/memory.usage_in_bytes memory/memory.stat; do "
    'if [ -r "$each" ]; then echo "== $each"; cat "$each"; fi; done; '
    "if command -v nvidia-smi >/dev/null; then echo '== gpus'; "
    "nvidia-smi --query-gpu=index,memory.used --format=csv,noheader,nounits; fi"
)
"""Reads the files of cgroup v2, or those of v1, and asks the driver. Needs sh and cat."""
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Usage:
    """What was measured; None where it was not."""

    cpu_nanoseconds: int | None = None
    memory_bytes: int | None = None
    inactive_bytes: int = 0
    """Of the memory: files that may be dropped at any time, which a working set leaves out."""
    gpu_memory_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def working_set_bytes(self) -> int | None:
        """As a kubelet counts it."""
        if self.memory_bytes is None:
            return None
        return max(0, self.memory_bytes - self.inactive_bytes)


def parse(printed: str) -> Usage:
    """What the script has printed, as far as it can be read."""
    parts = _parts(printed)
    microseconds = _entry(parts.get("cpu.stat", ""), "usage_usec")
    nanoseconds = _number(parts.get("cpuacct/cpuacct.usage", ""))
    memory = _number(parts.get("memory.current", parts.get("memory/memory.usage_in_bytes", "")))
    inactive = _entry(parts.get("memory.stat", ""), "inactive_file")
    older = _entry(parts.get("memory/memory.stat", ""), "total_inactive_file")
    return Usage(
        cpu_nanoseconds=microseconds * 1000 if microseconds is not None else nanoseconds,
        memory_bytes=memory,
        inactive_bytes=inactive or older or 0,
        gpu_memory_bytes=_gpus(parts.get("gpus", "")),
    )


def _parts(printed: str) -> dict[str, str]:
    """Each file's text, by its name."""
    files: dict[str, list[str]] = {}
    name = ""
    for line in printed.splitlines():
        if line.startswith("== "):
            name = line.removeprefix("== ")
        files.setdefault(name, [])
        if not line.startswith("== "):
            files[name].append(line)
    return {name: "\n".join(lines) for name, lines in files.items()}


def _entry(text: str, name: str) -> int | None:
    found = re.search(rf"^{name} (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else None


def _number(text: str) -> int | None:
    bare = text.strip()
    return int(bare) if bare.isascii() and bare.isdigit() else None


def _gpus(text: str) -> dict[str, int]:
    lines = re.findall(r"^(\d+), (\d+)$", text, re.MULTILINE)
    return {index: int(used) * _MIB for index, used in lines}
