"""What the suite's own report says."""

import json
from pathlib import Path

from tests.official.suite import Result, results


def test_specs_are_read_from_the_report(tmp_path: Path) -> None:
    """Those that ran, by their full names; set-up nodes are no specs."""
    specs = [
        {
            "LeafNodeType": "It",
            "LeafNodeText": "should run",
            "ContainerHierarchyTexts": ["[sig-node] Pods"],
            "State": "failed",
            "RunTime": 1_500_000_000,
            "Failure": {"Message": "it did not"},
        },
        {"LeafNodeType": "It", "LeafNodeText": "x", "State": "skipped", "RunTime": 0},
        {"LeafNodeType": "BeforeSuite", "LeafNodeText": "", "State": "passed", "RunTime": 0},
    ]
    (tmp_path / "report.json").write_text(json.dumps([{"SpecReports": specs}]))

    assert results(tmp_path) == [Result("[sig-node] Pods should run", "failed", 1.5, "it did not")]


def test_a_suite_that_never_began_has_no_results(tmp_path: Path) -> None:
    """The runner shows its log instead."""
    assert results(tmp_path) == []
