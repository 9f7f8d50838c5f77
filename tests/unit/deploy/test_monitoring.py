"""The dashboard fits together: Grafana shows what it is given and says little of the rest."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

MONITORING = Path(__file__).parents[3] / "deploy" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
SHOWN = [panel for panel in PANELS if panel["type"] != "row"]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def test_panels_have_a_number_and_a_place_of_their_own() -> None:
    """Two in one place hide each other."""
    cells = [
        (x, y)
        for panel in PANELS
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23


def test_every_panel_asks_the_chosen_prometheus_and_says_what_it_shows() -> None:
    """With a unit."""
    for panel in SHOWN:
        assert panel["datasource"] == SOURCE, panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters)), panel["title"]


def test_a_legend_names_only_labels_that_the_query_keeps() -> None:
    """Else Grafana shows an empty word."""
    for panel in SHOWN:
        for target in panel["targets"]:
            kept = re.search(r"\bby \(([^)]*)\)", target["expr"])
            if kept is None:
                continue
            for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                assert label in re.split(r",\s*", kept[1]), target


def test_variables_of_queries_are_defined() -> None:
    """Grafana's own apart."""
    known = {one["name"] for one in DASHBOARD["templating"]["list"]}
    text = " ".join(target["expr"] for panel in SHOWN for target in panel["targets"])

    assert set(re.findall(r"\$(\w+)", text)) - {"__rate_interval"} <= known


def test_every_recording_rule_is_used_by_somebody() -> None:
    """By another rule or by the dashboard."""
    rules = [
        rule
        for file in (MONITORING / "rules").glob("*.yaml")
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    ]
    queries = [rule["expr"] for rule in rules]
    queries += [target["expr"] for panel in SHOWN for target in panel["targets"]]
    text = " ".join(queries)

    names = {rule["record"] for rule in rules if "record" in rule}
    assert [name for name in sorted(names) if name not in text] == []
