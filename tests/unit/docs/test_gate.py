"""The reference of the gate: every key, reason and metric is in it, with its default."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from vk_provider.bursting.gate_state import GateReason
from vk_provider.controllers.gate_report import EVENTS, FROZEN
from vk_provider.fields import Fields
from vk_provider.metrics_bursting import BurstingMetrics
from vk_provider.settings_bursting_gate import parse_gate, parse_homecoming

PAGE = (Path(__file__).parents[3] / "docs" / "gate.md").read_text(encoding="utf-8")
GATE_METRICS = re.compile(r"gate_|burst|home|training_waiting|pods_waiting")


class Asked(Fields):
    """Fields that remember every key that was asked for, with those of the blocks below."""

    def __init__(self, prefix: str = "", keys: list[str] | None = None) -> None:
        super().__init__({}, "", [])
        self.prefix = prefix
        self.keys: list[str] = [] if keys is None else keys

    def take(self, key: str) -> Any:
        """One more key."""
        self.keys.append(self.prefix + key)
        return super().take(key)

    def child(self, key: str) -> Fields:
        """A block below."""
        return Asked(f"{self.prefix}{key}.", self.keys)


@pytest.mark.parametrize("parse", [parse_gate, parse_homecoming])
def test_every_key_is_explained(parse: Callable[[Fields], Any]) -> None:
    """By the path that a person writes."""
    asked = Asked()
    parse(asked)

    assert asked.keys
    assert [key for key in asked.keys if f"`{key}`" not in PAGE] == []


def test_every_reason_and_event_is_named() -> None:
    """Dashboards match these words."""
    words = [*GateReason, *EVENTS.values(), FROZEN]

    assert [word for word in words if f"`{word}`" not in PAGE] == []


def test_every_metric_of_the_gate_is_named() -> None:
    """As Prometheus shows it."""
    registry = CollectorRegistry()
    BurstingMetrics(registry)
    names = {
        family.name.removeprefix("vk_provider_") + ("_total" if family.type == "counter" else "")
        for family in registry.collect()
    }
    about_gates = {name for name in names if GATE_METRICS.match(name)}

    assert len(about_gates) > 12
    assert {name for name in about_gates if f"`{name}`" not in PAGE} == set()
