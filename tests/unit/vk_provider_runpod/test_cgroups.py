"""What a container's cgroup and its GPUs' driver print."""

from __future__ import annotations

import pytest
from vk_provider_runpod.cgroups import Usage, parse

VERSION_2 = """\
== cpu.stat
usage_usec 1500000
user_usec 1000000
system_usec 500000
== memory.current
1048576
== memory.stat
anon 500000
inactive_file 48576
active_file 1
== gpus
0, 2048
1, 0
"""
VERSION_1 = """\
== cpuacct/cpuacct.usage
1500000123
== memory/memory.usage_in_bytes
1048576
== memory/memory.stat
inactive_file 1
total_inactive_file 48576
"""


def test_both_versions_of_cgroups_are_read() -> None:
    """Counters in nanoseconds, memory without what may be dropped, GPUs by their index."""
    gpus = {"0": 2048 << 20, "1": 0}

    assert parse(VERSION_2) == Usage(1_500_000_000, 1_048_576, 48_576, gpus)
    assert parse(VERSION_1) == Usage(1_500_000_123, 1_048_576, 48_576)
    assert parse(VERSION_1).working_set_bytes == 1_000_000


@pytest.mark.parametrize(
    "printed",
    ["", "sh: cat: not found\n", "== cpu.stat\nusage_usec ?\n== memory.current\nmax\n== gpus\n"],
)
def test_what_can_not_be_read_is_absent(printed: str) -> None:
    """Never zero."""
    assert parse(printed) == Usage()
    assert parse(printed).working_set_bytes is None


def test_a_working_set_is_never_negative() -> None:
    """Two files are not read at the same moment."""
    assert Usage(memory_bytes=10, inactive_bytes=20).working_set_bytes == 0
