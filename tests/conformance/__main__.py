"""Command line: `python -m tests.conformance`. Exit code 1 if one of the nine tests fails."""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.conformance import netns
from tests.conformance.build import suite_binary
from tests.conformance.run import POD_TESTS, STATISTICS_TESTS, Report, run
from tests.rig.builds import BuildError, build_all
from tests.rig.interrupt import until_interrupted
from tests.rig.recipes import CONTROL_PLANE, kube_version
from tests.rig.toolchain import ToolchainError


def main() -> int:
    """Build, run, report."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="print the suite's own output")
    chosen = parser.parse_args()
    try:
        # Before the network is left: a build may have to download.
        build_all(CONTROL_PLANE)
        suite = suite_binary()
        netns.enter()
    except (BuildError, ToolchainError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    report = asyncio.run(run(suite, (*POD_TESTS, *STATISTICS_TESTS)))
    _show(report, verbose=chosen.verbose)
    return 1 if report.failed or report.refused else 0


def _show(report: Report, *, verbose: bool) -> None:
    print(f"Go virtual-kubelet's suite against our node, Kubernetes {kube_version()}")
    for each in report.results:
        print(f"{each.outcome:5} {each.test:50} {each.seconds:6.2f} s")
    for test in report.failed:
        if test not in {each.test for each in report.results}:
            print(f"FAIL  {test:50}  did not run")
    if report.failed or verbose:
        print(f"\n-- the suite said:\n{report.suite_log}\n-- the node said:\n{report.node_log}")
    if report.refused:
        print(f"\nFAIL  requests of the node that its rights do not cover:\n{report.refused}")
    passed = len(report.wanted) - len(report.failed)
    print(f"{passed} of {len(report.wanted)} passed")


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
