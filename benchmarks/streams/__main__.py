"""Command line: `python -m benchmarks.streams`. Both nodes behind one API server, in turn.

A busy machine makes both slow: compare ratios of one run. With --strict the exit code is 1 if an
aim is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.report import Aim, verdicts
from benchmarks.streams import report
from benchmarks.streams.clients import ClientError
from benchmarks.streams.go_program import go_program
from benchmarks.streams.measure import Found, Sizes, measure
from tests.rig.builds import BuildError, build_all
from tests.rig.interrupt import until_interrupted
from tests.rig.recipes import CONTROL_PLANE, kube_version
from tests.rig.toolchain import ToolchainError

_DEFAULT_FILE = Path(".cache/bench-streams.json")


def main() -> int:
    """Build, measure, report."""
    options = _options()
    sizes = Sizes(
        options.rounds, options.exec_mib, options.forward_mib, options.crowd, options.waves
    )
    try:
        build_all(CONTROL_PLANE)
        go_program()
        found = asyncio.run(measure(sizes))
    except (BuildError, ToolchainError, ClientError) as error:
        print(error, file=sys.stderr)
        return 1
    judged = report.aims(found)
    sections = (
        report.NOTES,
        report.table(found),
        report.crowd(found),
        report.load(found),
        verdicts(judged),
    )
    print("\n\n".join(sections))
    _write(options.json, found, judged)
    return 1 if options.strict and any(aim.met is False for aim in judged) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="times each is measured (default: 5)")
    parser.add_argument("--exec-mib", type=int, default=512, help="output of exec (default: 512)")
    parser.add_argument("--forward-mib", type=int, default=256, help="download (default: 256)")
    parser.add_argument("--crowd", type=int, default=200, help="commands at once (default: 200)")
    parser.add_argument("--waves", type=int, default=5, help="times the crowd comes (default: 5)")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if an aim is missed")
    parser.add_argument("--json", type=Path, default=_DEFAULT_FILE, help="where figures go")
    return parser.parse_args()


def _write(path: Path, found: Found, judged: list[Aim]) -> None:
    facts = {
        "kubernetes": kube_version(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        **asdict(found),
        "aims": [asdict(aim) for aim in judged],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"\nfigures: {path}")


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
