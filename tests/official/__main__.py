"""Command line: `python -m tests.official`. Exit code 1 if too few reference specs pass.

With `--contract` it is pytest's, which tries the provider's contract on the same node instead.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.official import report, suite
from tests.official.reference import LISTS, VERSION, specs
from tests.official.world import world
from tests.rig import builds
from tests.rig.builds import BuildError
from tests.rig.control_plane import ControlPlane
from tests.rig.progress import say
from tests.rig.real_node import enclosure, images, network, packages
from tests.rig.real_node.enclosure import EnclosureError
from tests.rig.real_node.packages import MissingPackagesError
from tests.rig.recipes import CONTROL_PLANE, NODE
from tests.rig.toolchain import ToolchainError

_ENCLOSED = "--enclosed"
_CONTRACT = Path(__file__).with_name("contract.py")
_SECONDS_BETWEEN_WORDS = 60.0


def main() -> int:
    """Prepare outside, run inside."""
    chosen = _parser().parse_args()
    wanted = [spec for spec in specs(chosen.list) if re.search(chosen.focus, spec)]
    if not wanted and not chosen.contract:
        print(f"--focus {chosen.focus!r} names none of the reference specs", file=sys.stderr)
        return 1
    if chosen.enclosed:
        network.prepare()
        return _contract(chosen.focus) if chosen.contract else asyncio.run(_run(wanted, chosen))
    try:
        packages.require(install=chosen.install)
        # Before the network is left: a build may have to download.
        builds.build_all([*CONTROL_PLANE, *NODE, "coredns"], VERSION)
        if chosen.contract:
            builds.build_all([*CONTROL_PLANE, "kwok"])  # what a bed of the fixtures may want
        images.archives(VERSION)
        return enclosure.run([sys.executable, "-m", "tests.official", _ENCLOSED, *sys.argv[1:]])
    except (BuildError, EnclosureError, MissingPackagesError, ToolchainError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.official", description=__doc__)
    parser.add_argument(
        "--contract", action="store_true", help="the provider's contract; --focus is pytest's -k"
    )
    parser.add_argument(
        "--focus", default="", metavar="REGEX", help="only specs whose name matches"
    )
    parser.add_argument("--list", default=LISTS[0], choices=LISTS, help="which specs (reference)")
    parser.add_argument("--processes", type=int, default=8, help="how many run at once (8)")
    parser.add_argument("--install", action="store_true", help="install missing Debian packages")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy logs and report there")
    parser.add_argument(_ENCLOSED, action="store_true", help=argparse.SUPPRESS)
    return parser


def _contract(focus: str) -> int:
    """Run pytest inside; SIGTERM ends it in order, as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return int(pytest.main([str(_CONTRACT), "-k", focus]))


async def _run(wanted: list[str], chosen: argparse.Namespace) -> int:
    """The run inside; SIGTERM ends it in order, as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await _measure(wanted, chosen)
    except asyncio.CancelledError:
        return 1


async def _measure(wanted: list[str], chosen: argparse.Namespace) -> int:
    async with world() as home:
        folder = home.folder / "suite"
        folder.mkdir()
        ginkgo, program = (
            builds.binary(name, home.kube_version) for name in ("ginkgo", "e2e.test")
        )
        command = suite.command(ginkgo, program, home.kubeconfig, folder, wanted, chosen.processes)
        say(f"running {len(wanted)} specs in {chosen.processes} processes")
        await home.start("suite", command, stage=3)
        await _wait(home)
        found = suite.results(folder)
        if chosen.keep:
            _keep(home.folder, chosen.keep)
        if not found:
            print(home.log_tail("suite", 60))
    print(report.render(found, wanted))
    return 0 if report.is_enough(found, wanted) else 1


async def _wait(home: ControlPlane) -> None:
    """Until the suite ends, with a word every minute: it may take half an hour."""
    ended = asyncio.create_task(home.wait("suite"))
    while not (await asyncio.wait({ended}, timeout=_SECONDS_BETWEEN_WORDS))[0]:
        log = home.log_file("suite").read_text(errors="replace")
        say(f"{log.count(suite.ENDED)} specs have ended, {log.count(suite.FAILED)} of them badly")


def _keep(folder: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for file in (*folder.glob("*.log"), *(folder / "suite").glob("*")):
        if file.is_file():
            shutil.copy(file, target)


if __name__ == "__main__":
    sys.exit(main())
