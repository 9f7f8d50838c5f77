"""Preferred node affinity, operator by operator."""

from typing import Any

import pytest

from vk_provider.bursting.node_terms import matching_weight, preferences

LABELS = {"pool": "home", "size": "8"}


def pod(*expressions: dict[str, Any]) -> dict[str, Any]:
    """A pod with one preference of weight 100."""
    term = {"weight": 100, "preference": {"matchExpressions": list(expressions)}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {"spec": {"affinity": affinity}}


@pytest.mark.parametrize(
    ("key", "operator", "values", "weight"),
    [
        ("pool", "In", ["home", "x"], 100),
        ("pool", "In", ["x"], 0),
        ("pool", "NotIn", ["x"], 100),
        ("type", "NotIn", ["virtual-kubelet"], 100),
        ("pool", "NotIn", ["home"], 0),
        ("pool", "Exists", [], 100),
        ("type", "Exists", [], 0),
        ("type", "DoesNotExist", [], 100),
        ("size", "Gt", ["4"], 100),
        ("size", "Lt", ["4"], 0),
        ("type", "Gt", ["4"], 0),
        ("size", "Gt", [], 0),
        ("size", "Near", ["8"], 0),
    ],
)
def test_an_operator_holds_as_the_scheduler_says(
    key: str, operator: str, values: list[str], weight: float
) -> None:
    """On the labels of a node."""
    expression = {"key": key, "operator": operator, "values": values}

    assert matching_weight(pod(expression), LABELS) == weight


def test_a_preference_without_expressions_prefers_nothing() -> None:
    """And a pod without preferences has none."""
    assert matching_weight(pod(), LABELS) == 0
    assert preferences({}) == []
