"""Command line: `python -m benchmarks`. Each candidate in turn on a fresh bed, several rounds.

Exit code 1 if an aim is missed. A busy machine makes everybody slow: compare ratios of one run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.measure import Round, RoundError, measure
from benchmarks.nodes import CANDIDATES, GO, OURS
from tests.rig.builds import BuildError, build_all
from tests.rig.interrupt import until_interrupted
from tests.rig.progress import say
from tests.rig.recipes import CONTROL_PLANE, kube_version
from tests.rig.toolchain import ToolchainError

_DEFAULT_FILE = Path(".cache/bench.json")


def main() -> int:
    """Build, measure, report."""
    options = _options()
    chosen = options.only or list(CANDIDATES)
    try:
        build_all(CONTROL_PLANE)
        for name in chosen:
            CANDIDATES[name].prepare()
        rounds = asyncio.run(_measure_all(chosen, options))
    except (BuildError, ToolchainError, RoundError) as error:
        print(error, file=sys.stderr)
        return 1
    found = report.aims(rounds)
    sections = (
        report.notes(rounds),
        report.table(rounds),
        report.ratios(rounds),
        "API requests per pod:\n" + report.requests(rounds),
        report.verdicts(found),
    )
    print("\n\n".join(section for section in sections if section))
    _write(options.json, rounds, found)
    return 1 if any(aim.met is False for aim in found) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--replicas", type=int, default=1000, help="pods (default: 1000)")
    parser.add_argument("--rounds", type=int, default=3, help="times each runs (default: 3)")
    parser.add_argument(
        "--released-replicas",
        type=int,
        default=50,
        metavar="N",
        help=f"pods for {GO}, which sends 5 requests a second; one round (default: 50)",
    )
    parser.add_argument("--only", action="append", choices=CANDIDATES, help="may be repeated")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one way")
    parser.add_argument("--json", type=Path, default=_DEFAULT_FILE, help="where figures go")
    parser.add_argument("--profile", type=Path, help=f"cProfile of {OURS}, last round, to a file")
    return parser.parse_args()


async def _measure_all(chosen: list[str], options: argparse.Namespace) -> dict[str, list[Round]]:
    """In turn, not one after another: what else the machine does then hits all alike."""
    rounds: dict[str, list[Round]] = defaultdict(list)
    for number in range(options.rounds):
        for name in chosen:
            if name == GO and number > 0:
                continue
            pods = min(options.replicas, options.released_replicas if name == GO else sys.maxsize)
            profile = options.profile.absolute() if options.profile and name == OURS else None
            done = await _measured(name, pods, options.limit, profile)
            if done is None:
                continue
            say(
                f"round {number + 1}: {name}: {pods} pods Running in {done.running_seconds:.1f} s, "
                f"gone in {done.gone_seconds:.1f} s, {done.cpu:.2f} CPU-s"
            )
            rounds[name].append(done)
    return rounds


async def _measured(name: str, pods: int, limit: float, profile: Path | None) -> Round | None:
    """One round, or None: a peer that fell over (the Go mock has data races) gets one more try,
    and then costs its own figures only. Ours must not fall over."""
    for is_last in (False, True):
        try:
            return await measure(CANDIDATES[name], pods, limit, profile)
        except RoundError as error:
            if name == OURS:
                raise
            say(f"{error}; {'left out' if is_last else 'once more'}")
    return None


def _write(path: Path, rounds: dict[str, list[Round]], found: list[report.Aim]) -> None:
    facts: dict[str, Any] = {
        "kubernetes": kube_version(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "rounds": [asdict(each) for several in rounds.values() for each in several],
        "aims": [{"aim": a.sentence, "seen": a.seen, "met": a.met} for a in found],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"\nfigures: {path}")


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
