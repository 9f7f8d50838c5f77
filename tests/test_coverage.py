"""The coverage gates, run after the suites: all of the pure code, most of the rest."""

import json
import re
from dataclasses import dataclass

import pytest
from coverage import Coverage

# Code without I/O has no excuse: every branch is one call away.
COMPLETE = re.compile(
    r"vk_provider/(pods|node|placement|wire|bursting)/|providers/\w+/translate\.py$"
)
ELSEWHERE_PERCENT = 90


@dataclass(frozen=True)
class Measured:
    """One file: how many lines and branches it has, how many ran, and which did not."""

    path: str
    parts: int
    ran: int
    missing_lines: list[int]
    missing_branches: list[list[int]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Measured]:
    """What the suites have run, file by file."""
    coverage = Coverage()
    coverage.load()
    assert coverage.get_data().measured_files(), "nothing recorded: `make test` runs the suites"
    report = tmp_path_factory.mktemp("coverage") / "report.json"
    coverage.json_report(outfile=str(report))

    return [
        Measured(
            path=path,
            parts=one["summary"]["num_statements"] + one["summary"]["num_branches"],
            ran=one["summary"]["covered_lines"] + one["summary"]["covered_branches"],
            missing_lines=one["missing_lines"],
            missing_branches=one["missing_branches"],
        )
        for path, one in sorted(json.loads(report.read_text())["files"].items())
    ]


def test_pure_code_is_covered_completely(recorded: list[Measured]) -> None:
    """Every line and branch of what decides and translates has run."""
    gaps = [
        f"{m.path}: lines {m.missing_lines}, branches {m.missing_branches}"
        for m in recorded
        if COMPLETE.match(m.path) and m.ran < m.parts
    ]

    assert not gaps, "not covered:\n" + "\n".join(gaps)


def test_the_rest_is_covered_mostly(recorded: list[Measured]) -> None:
    """Nine of ten lines and branches of everything else have run."""
    rest = [m for m in recorded if not COMPLETE.match(m.path)]
    percent = 100 * sum(m.ran for m in rest) / max(1, sum(m.parts for m in rest))

    assert percent >= ELSEWHERE_PERCENT, f"{percent:.1f} %; `htmlcov/index.html` shows the gaps"
