"""``python -m tests.demo``: build what is missing, play all acts, exit 0 only if all held."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from tests.demo.acts import ACTS, Script
from tests.demo.show import Show
from tests.demo.stage import DemoError, set_up
from tests.rig.interrupt import until_interrupted


async def play(script: Script) -> int:
    """Play every act on a stage of its own; the exit code."""
    begun = time.monotonic()
    async with set_up() as stage:
        show = Show(stage.bed, begun)
        try:
            for act in ACTS:
                await act(stage, show, script)
        except DemoError as fault:
            sys.stdout.write(f"\nThe demo failed: {fault}\n")
            return 1
    sys.stdout.write(f"\nAll of it held. {time.monotonic() - begun:.0f} s.\n")
    return 0


def main() -> int:
    """Parse the flags and play."""
    parser = argparse.ArgumentParser(prog="python -m tests.demo", description=__doc__)
    parser.add_argument("--without-kill", action="store_true", help="no instance dies; must fail")
    parser.add_argument(
        "--without-refusal", action="store_true", help="capacity never runs out; must fail"
    )
    flags = parser.parse_args()
    return asyncio.run(play(Script(not flags.without_kill, not flags.without_refusal)))


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
