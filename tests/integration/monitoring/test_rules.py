"""Recording and alerting rules that are shipped: promtool runs every one, firing and silent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rig.prometheus import promtool
from vk_provider.bursting.gpu_findings import SEVERITY

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "deploy" / "monitoring"
RULES = sorted((MONITORING / "rules").glob("*.yaml"))
TESTS = sorted((ROOT / "tests" / "rules").glob("*.yaml"))


def rules() -> Iterator[dict[str, Any]]:
    """Every rule of every file."""
    for file in RULES:
        for group in yaml.safe_load(file.read_text())["groups"]:
            yield from group["rules"]


def cases() -> Iterator[dict[str, Any]]:
    """Every case of every test file."""
    for file in TESTS:
        yield from yaml.safe_load(file.read_text())["tests"]


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.stem)
async def test_a_rule_file_is_valid(file: Path) -> None:
    """To Prometheus' own checker."""
    assert "SUCCESS" in await promtool("check", "rules", file)


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
async def test_the_rules_do_what_their_tests_say(file: Path) -> None:
    """On written series."""
    assert "SUCCESS" in await promtool("test", "rules", file)


def test_every_alert_is_seen_firing_and_silent() -> None:
    """With its labels and words; silent in the same file, at another time or for other series."""
    firing = {
        one["alertname"] for case in cases() for one in case.get("alert_rule_test", [])
        if one["exp_alerts"]
    }  # fmt: skip
    alerts = {rule["alert"] for rule in rules() if "alert" in rule}

    assert alerts - firing == set()
    assert len(alerts) > 40


def test_every_recorded_series_is_computed_in_a_test() -> None:
    """By name."""
    asked = " ".join(one["expr"] for case in cases() for one in case.get("promql_expr_test", []))
    records = {rule["record"] for rule in rules() if "record" in rule}

    assert [name for name in sorted(records) if name not in asked] == []


def test_an_alert_says_how_bad_it_is_and_what_to_do() -> None:
    """And one that taints nodes has a verdict that there is."""
    for rule in rules():
        if "alert" not in rule:
            continue
        assert rule["labels"]["severity"] in ("info", "warning", "critical"), rule["alert"]
        assert rule["annotations"].keys() == {"summary", "description"}, rule["alert"]
        assert rule["labels"].get("gpu_health") in SEVERITY, rule["alert"]


def test_the_operators_objects_are_the_same_rules() -> None:
    """Whoever changes one changes the other."""
    objects = yaml.safe_load_all((MONITORING / "operator" / "rules.yaml").read_text())
    shipped = [yaml.safe_load(file.read_text()) for file in RULES]

    found = [one["spec"] for one in objects]
    assert sorted(found, key=str) == sorted(shipped, key=str)


def test_the_config_maps_hold_every_file() -> None:
    """A forgotten file is a rule that nobody loads."""
    kustomization = yaml.safe_load((MONITORING / "kustomization.yaml").read_text())
    ruled, shown = kustomization["configMapGenerator"]

    assert sorted(ruled["files"]) == sorted(f"rules/{file.name}" for file in RULES)
    assert shown["files"] == ["vk-provider.json=dashboard.json"]
