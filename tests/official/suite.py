"""The command line of the official suite, and what it reports.

Fed by the runner with a bed; feeds `report` with results.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.official.reference import focus
from tests.rig.access import kubectl_path

_TIMEOUT = "70m"
_REPORT = "report.json"
_SKIPPED = "skipped"

ENDED, FAILED = "•", "• ["
"""What its log says of each spec that ended, and of each that did not pass."""


@dataclass(frozen=True, slots=True)
class Result:
    """How one spec ended; `said` is empty for one that passed."""

    spec: str
    state: str
    seconds: float
    said: str


def command(
    ginkgo: Path, suite: Path, kubeconfig: Path, folder: Path, wanted: Sequence[str], processes: int
) -> list[str]:
    """Return the command that runs the wanted specs and leaves a report in the folder."""
    return [
        str(ginkgo),
        f"--procs={processes}",
        "--no-color",
        "--succinct",
        f"--timeout={_TIMEOUT}",
        f"--focus={focus(wanted)}",
        f"--output-dir={folder}",
        f"--json-report={_REPORT}",
        str(suite),
        "--",
        "--provider=skeleton",
        f"--kubeconfig={kubeconfig}",
        f"--kubectl-path={kubectl_path()}",
        "--disable-log-dump",
        "--dump-logs-on-failure=false",
        f"--e2e-output-dir={folder}",
    ]


def results(folder: Path) -> list[Result]:
    """Read the report; empty where the suite did not get that far."""
    path = folder / _REPORT
    if not path.exists():
        return []
    found = []
    for suite in json.loads(path.read_text()):
        for spec in suite["SpecReports"]:
            if spec["LeafNodeType"] == "It" and spec["State"] != _SKIPPED:
                names = [*(spec.get("ContainerHierarchyTexts") or []), spec["LeafNodeText"]]
                said = (spec.get("Failure") or {}).get("Message", "")
                seconds = spec["RunTime"] / 1e9
                found.append(Result(" ".join(names), spec["State"], seconds, said))
    return found
