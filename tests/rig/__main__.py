"""Command line of the test bed: `python -m tests.rig build`, `python -m tests.rig up`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys

from tests.rig import recipes
from tests.rig.builds import BuildError, build_all
from tests.rig.interrupt import until_interrupted
from tests.rig.toolchain import ToolchainError


def main() -> int:
    """Run one command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.rig", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build programs into the cache, print their paths")
    build.add_argument("names", nargs="*", metavar="NAME", help=", ".join(recipes.PROGRAMS))
    commands.add_parser("up", help="run a control plane until Ctrl-C, print its kubeconfig")
    chosen = parser.parse_args()
    if chosen.command == "up":
        asyncio.run(_up())
        return 0
    unknown = [name for name in chosen.names if name not in recipes.PROGRAMS]
    if unknown:
        parser.error(f"no recipe for {', '.join(unknown)}; known: {', '.join(recipes.PROGRAMS)}")
    return _build(chosen.names or [*recipes.CONTROL_PLANE, "kwok"])


def _build(names: list[str]) -> int:
    try:
        built = build_all(names)
    except (BuildError, ToolchainError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    for name, path in built.items():
        print(f"{name} {path}")
    return 0


async def _up() -> None:
    # Here, not at the top: `build` must work with the standard library alone.
    from tests.rig.control_plane import ControlPlane

    stop = asyncio.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    async with ControlPlane() as bed:
        print(f"export KUBECONFIG={bed.kubeconfig}", flush=True)
        await stop.wait()


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
