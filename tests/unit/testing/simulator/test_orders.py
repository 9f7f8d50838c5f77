"""Orders of the back door: what is taken, and what is told of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from vk_provider.testing.simulator.orders import BadRequestError, read_order


@dataclass
class Wishes:
    """One field of each kind."""

    id: str = ""
    hold_ms: float = 0.0
    count: int | None = None
    is_on: bool = False
    latency_ms: tuple[float, float] = (0.0, 0.0)
    log_lines: tuple[str, ...] = ()


def test_an_order_is_arguments() -> None:
    """In our spelling; lists are tuples."""
    body = {"holdMs": 3, "count": None, "isOn": True, "latencyMs": [1, 2.5], "logLines": ["a"]}

    assert read_order({**body, "seed": "any"}, Wishes, more=["seed"]) == {
        "hold_ms": 3,
        "count": None,
        "is_on": True,
        "latency_ms": (1, 2.5),
        "log_lines": ("a",),
        "seed": "any",
    }


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("holdMs", "x", 'holdMs: found "x", allowed: a number, 0 or more'),
        ("holdMs", -1, "holdMs: found -1, allowed: a number, 0 or more"),
        ("holdMs", True, "holdMs: found true, allowed: a number"),
        ("holdMs", float("inf"), "holdMs: found inf, allowed"),
        ("count", 1.5, "count: found 1.5, allowed: a whole number or null"),
        ("count", False, "count: found false, allowed: a whole number or null"),
        ("isOn", 1, "isOn: found 1, allowed: true or false"),
        ("latencyMs", [1], "latencyMs: found a list, allowed: a list of 2: a number"),
        ("latencyMs", [1, "x"], "latencyMs: found a list, allowed: a list of 2: a number"),
        ("logLines", "x", 'logLines: found "x", allowed: a list of any length: a text each'),
        ("id", "x", "unknown keys ['id']; known: ['count', 'holdMs'"),
        ("cuont", 1, "unknown keys ['cuont']; known: ['count', 'holdMs'"),
    ],
)
def test_a_wrong_value_is_told_at_once(key: str, value: Any, words: str) -> None:
    """By its key, with what is allowed."""
    with pytest.raises(BadRequestError) as refused:
        read_order({key: value}, Wishes, hidden=["id"])

    assert str(refused.value).startswith(words)
