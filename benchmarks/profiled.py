"""The command under cProfile, in CPU time: `python -m benchmarks.profiled FILE run -f …`.

Waiting costs nothing here, so that what a node does stands out from what it waits for. Read the
file with `python -m pstats FILE`. Fed by `nodes`; runs ``vk_provider.cli``.
"""

from __future__ import annotations

import cProfile
import sys
import time

from vk_provider.cli import main


def _run() -> int:
    file, sys.argv[1:] = sys.argv[1], sys.argv[2:]
    profile = cProfile.Profile(time.process_time)
    try:
        return profile.runcall(main)
    finally:
        profile.dump_stats(file)


if __name__ == "__main__":
    sys.exit(_run())
