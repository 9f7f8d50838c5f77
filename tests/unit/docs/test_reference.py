"""What people look up is written down: keys with their defaults, metrics, reasons, components."""

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from vk_provider.faults import FieldProblem
from vk_provider.metrics import Metrics
from vk_provider.pods.events import EventReason, FailedReason, WaitingReason
from vk_provider.settings_parse import parse_node

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
CONFIGURATION = (ROOT / "docs/configuration.md").read_text()
OPERATING = (ROOT / "docs/operating.md").read_text()
ALL = "".join(page.read_text() for page in PAGES)
BLOCKS = ("admission", "bursting.gate", "door", "leaderElection", "server", "server.tls", "storm")


def keys(block: str = "") -> set[str]:
    """What a block of the spec knows: an unknown key is told the valid ones."""
    inner: dict[str, Any] = {"zzzzzzzz": 1}
    for name in reversed(block.split(".") if block else []):
        inner = {name: inner}
    problems: list[FieldProblem] = []
    parse_node({"spec": inner}, problems)
    (message,) = [str(one) for one in problems if "zzzzzzzz" in str(one)]
    return set(message.partition("valid: ")[2].split(", "))


def defaults(settings: Any, prefix: str = "") -> dict[str, str]:
    """Every number of the settings, by the path that a person writes."""
    found: dict[str, str] = {}
    for one in fields(settings):
        head, *tail = one.name.split("_")
        path, value = prefix + head + "".join(map(str.title, tail)), getattr(settings, one.name)
        if is_dataclass(value):
            found |= defaults(value, f"{path}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[path] = f"{value:g}"
    return found


def test_every_key_of_a_node_is_told() -> None:
    """By its path."""
    told = set(re.findall(r"`([\w.]+)`", CONFIGURATION))

    assert [key for key in keys() if not any(each.startswith(key) for each in told)] == []
    wanted = {f"{block}.{key}" for block in BLOCKS for key in keys(block)}
    assert wanted - told - {"server.tls"} == set()


def test_every_default_is_the_codes() -> None:
    """Budgets have a page of their own. A gate's key is nested deeper than its setting, and some
    settings leave ``Seconds`` out of their names."""
    node = parse_node({"metadata": {"name": "n"}, "spec": {}}, [])
    rows = {
        key: cells[1]
        for cells in re.findall(r"^\| (.+?) \| (.+?) \|", CONFIGURATION, re.MULTILINE)
        for key in re.findall(r"`([\w.]+)`", cells[0])
    }

    found = {key: value for key, value in defaults(node).items() if not key.startswith("placement")}
    found["bursting.gate.deadAfterSeconds"] = found.pop("bursting.deadAfterSeconds")
    for key, value in found.items():
        told = rows.get(key) or rows[f"{key}Seconds"]
        assert value in told.split(", "), key


def test_every_reason_and_component_is_explained() -> None:
    """A person looks for the word that kubectl shows."""
    components = [folder.name for folder in (ROOT / "deploy/kustomize/components").iterdir()]
    words = [*FailedReason, *WaitingReason, *EventReason, *components]

    assert [word for word in words if f"`{word}`" not in OPERATING] == []


def test_every_metric_is_told() -> None:
    """Somewhere, with or without our prefix."""
    registry = CollectorRegistry()
    Metrics(registry)
    names = [
        family.name.removeprefix("vk_provider_") + ("_total" if family.type == "counter" else "")
        for family in registry.collect()
    ]

    assert [name for name in names if not re.search(rf"`(vk_provider_)?{name}[`{{]", ALL)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    """Files that are there, and headings in them."""
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
            anchors = [
                re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings
            ]
            assert anchor in anchors, target
