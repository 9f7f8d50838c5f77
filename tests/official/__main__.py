"""Command line: `python -m tests.official`. Exit code 1 if too few reference specs pass."""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import sys
from pathlib import Path

from tests.official import report, suite
from tests.official.reference import specs
from tests.rig import builds
from tests.rig.builds import BuildError
from tests.rig.progress import say
from tests.rig.real_node import enclosure, images, network, packages
from tests.rig.real_node.enclosure import EnclosureError
from tests.rig.real_node.packages import MissingPackagesError
from tests.rig.recipes import CONTROL_PLANE, NODE
from tests.rig.toolchain import ToolchainError

_ENCLOSED = "--enclosed"


def main() -> int:
    """Prepare outside, run inside."""
    chosen = _parser().parse_args()
    wanted = [spec for spec in specs() if re.search(chosen.focus, spec)]
    if not wanted:
        print(f"--focus {chosen.focus!r} names none of the reference specs", file=sys.stderr)
        return 1
    if chosen.enclosed:
        network.prepare()
        return asyncio.run(_run(wanted, chosen))
    try:
        packages.require(install=chosen.install)
        # Before the network is left: a build may have to download.
        builds.build_all([*CONTROL_PLANE, *NODE, "coredns"])
        images.archives()
        return enclosure.run([sys.executable, "-m", "tests.official", _ENCLOSED, *sys.argv[1:]])
    except (BuildError, EnclosureError, MissingPackagesError, ToolchainError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.official", description=__doc__)
    parser.add_argument(
        "--focus", default="", metavar="REGEX", help="only specs whose name matches"
    )
    parser.add_argument("--processes", type=int, default=8, help="how many run at once (8)")
    parser.add_argument("--install", action="store_true", help="install missing Debian packages")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy logs and report there")
    parser.add_argument(_ENCLOSED, action="store_true", help=argparse.SUPPRESS)
    return parser


async def _run(wanted: list[str], chosen: argparse.Namespace) -> int:
    # Here, not at the top: the network must be up before anything looks at it.
    from tests.official.world import world

    async with world() as home:
        folder = home.folder / "suite"
        folder.mkdir()
        ginkgo, program = (
            builds.binary(name, home.kube_version) for name in ("ginkgo", "e2e.test")
        )
        command = suite.command(ginkgo, program, home.kubeconfig, folder, wanted, chosen.processes)
        say(f"running {len(wanted)} specs in {chosen.processes} processes")
        await home.start("suite", command, stage=3)
        await home.wait("suite")
        found = suite.results(folder)
        if chosen.keep:
            _keep(home.folder, chosen.keep)
        if not found:
            print(home.log_tail("suite", 60))
    print(report.render(found, wanted))
    return 0 if report.is_enough(found, wanted) else 1


def _keep(folder: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for file in (*folder.glob("*.log"), *(folder / "suite").glob("*")):
        if file.is_file():
            shutil.copy(file, target)


if __name__ == "__main__":
    sys.exit(main())
