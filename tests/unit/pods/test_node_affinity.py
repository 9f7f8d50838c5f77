"""Selectors and required affinity hold as in the scheduler."""

from typing import Any

import pytest

from vk_provider.pods.node_affinity import is_selected

LABELS = {"zone": "outside", "gpus": "4", "word": "x"}


def affine(*terms: dict[str, Any]) -> dict[str, Any]:
    """A pod whose node must match one of these terms."""
    required = {"nodeSelectorTerms": list(terms)}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return {"spec": {"affinity": {"nodeAffinity": affinity}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    """A term of one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "matches"),
    [
        (expression("zone", "In", "inside", "outside"), True),
        (expression("none", "In", "outside"), False),
        (expression("zone", "NotIn", "inside"), True),
        (expression("none", "NotIn", "inside"), True),
        (expression("zone", "NotIn", "outside"), False),
        (expression("zone", "Exists"), True),
        (expression("none", "Exists"), False),
        (expression("zone", "DoesNotExist"), False),
        (expression("none", "DoesNotExist"), True),
        (expression("gpus", "Gt", "3"), True),
        (expression("gpus", "Gt", "4"), False),
        (expression("gpus", "Lt", "5"), True),
        (expression("gpus", "Lt", "4"), False),
        (expression("none", "Gt", "0"), False),
        (expression("gpus", "Gt", "1", "2"), False),
        (expression("word", "Lt", "9"), False),
        (expression("zone", "Near", "outside"), False),
        ({}, False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["burst"]}]}, True),
        (
            {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["burst"]}]},
            False,
        ),
    ],
)
def test_a_term_holds_by_its_operator(term: dict[str, Any], matches: bool) -> None:
    """Every operator, on a label that is there and one that is not."""
    assert is_selected(affine(term), "burst", LABELS) is matches


def test_terms_are_alternatives_and_expressions_are_not() -> None:
    """One term is enough; in a term everything must hold."""
    good, bad = expression("zone", "Exists"), expression("none", "Exists")
    both = {"matchExpressions": good["matchExpressions"] + bad["matchExpressions"]}

    assert is_selected(affine(bad, good), "burst", LABELS)
    assert not is_selected(affine(both), "burst", LABELS)
    assert not is_selected(affine(), "burst", LABELS)


def test_a_node_selector_is_exact() -> None:
    """Every label of it with its value; without one, any node will do."""
    assert is_selected({"spec": {"nodeSelector": {"zone": "outside"}}}, "burst", LABELS)
    assert not is_selected({"spec": {"nodeSelector": {"zone": "inside"}}}, "burst", LABELS)
    assert is_selected({}, "burst", LABELS)
