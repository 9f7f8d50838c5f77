"""The pages about bursting: every key and every rule is there, samples are valid."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from vk_provider.faults import FieldProblem
from vk_provider.fields import Fields
from vk_provider.settings_bursting import parse_bursting_document
from vk_provider.settings_bursting_gpu_health import default_rules, parse_gpu_health
from vk_provider.settings_bursting_quota_bridge import parse_quota_bridge
from vk_provider.settings_bursting_webhook import parse_webhook

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: Path, language: str = "yaml") -> Iterator[str]:
    """The code blocks of a page."""
    yield from re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def keys(parse: Callable[[Fields], Any]) -> set[str]:
    """What a block knows: an unknown key is told the valid ones."""
    problems: list[FieldProblem] = []
    parse(Fields({"zzzzzzzz": 1}, "", problems))
    (message,) = [str(one) for one in problems]
    return set(message.partition("valid: ")[2].split(", "))


@pytest.mark.parametrize(
    ("heading", "parse"),
    [
        ("## The webhook", parse_webhook),
        ("## GPU health", parse_gpu_health),
        ("## The quota bridge", parse_quota_bridge),
    ],
)
def test_every_key_of_a_block_is_told(heading: str, parse: Callable[[Fields], Any]) -> None:
    """In its own section; what all of them have, at the top."""
    top, _, rest = (DOCS / "bursting-options.md").read_text().partition(heading)
    section = rest.partition("\n## ")[0]

    assert "enabled" in top
    assert keys(parse) - {"enabled"} - set(re.findall(r"\w+", section)) == set()


def test_every_default_rule_is_told() -> None:
    """By its name, which `disabledRules` takes."""
    text = (DOCS / "bursting-options.md").read_text()

    assert [rule.name for rule in default_rules() if f"`{rule.name}`" not in text] == []


def test_every_sample_of_a_block_is_valid() -> None:
    """As it stands on the page."""
    for text in blocks(DOCS / "bursting-options.md"):
        problems: list[FieldProblem] = []
        parse_bursting_document({"metadata": {}, **yaml.safe_load(text)}, problems)
        assert [str(one) for one in problems if "prometheus.url" not in str(one)] == []


def test_every_rule_is_told() -> None:
    """Alerts with their severity, recorded series by their last part."""
    text = (DOCS / "monitoring.md").read_text()
    for file in (DOCS.parent / "deploy" / "monitoring" / "rules").glob("*.yaml"):
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                if "alert" in rule:
                    assert f"| `{rule['alert']}` | {rule['labels']['severity']}" in text
                else:
                    assert rule["record"].rpartition(":")[2] in text, rule["record"]
