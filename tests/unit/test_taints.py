"""Tolerations answer taints by the API server's rules."""

from typing import Any

import pytest

from vk_provider.taints import Taint, Toleration, read_taint, tolerates

TAINT = {"key": "k", "value": "5", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "answer"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"value": "5"}, False),
        ({}, False),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "value": "5"}, True),
        ({"key": "k", "operator": "Equal", "value": "6"}, False),
        ({"key": "k", "operator": "Gt", "value": "4"}, True),
        ({"key": "k", "operator": "Gt", "value": "5"}, False),
        ({"key": "k", "operator": "Lt", "value": "6"}, True),
        ({"key": "k", "operator": "Lt", "value": "5"}, False),
        ({"key": "k", "operator": "Lt", "value": "many"}, False),
        ({"key": "k", "operator": "Like", "value": "5"}, False),
        ({"key": ["k"], "operator": "Exists"}, True),
    ],
)
def test_a_toleration_answers_by_key_operator_value_and_effect(
    toleration: dict[str, Any], answer: bool
) -> None:
    """Also by the numeric operators of newer API servers, and by none that it does not know."""
    assert tolerates(toleration, TAINT) is answer


def test_a_numeric_operator_needs_a_numeric_taint() -> None:
    """It never crashes on another."""
    assert not Toleration("k", "Gt", "1").covers(Taint("k", "word"))


def test_a_taint_without_a_value_is_read() -> None:
    """Most have none."""
    assert read_taint({"key": "k", "effect": "NoExecute"}) == Taint("k", "", "NoExecute")
