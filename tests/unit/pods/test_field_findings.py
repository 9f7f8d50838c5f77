"""Fields that are refused or noted, by tables of them."""

from __future__ import annotations

from vk_provider.faults import FieldProblem
from vk_provider.pods.field_findings import by_table, shown
from vk_provider.pods.types import FieldNote


def test_what_says_something_is_refused_or_noted() -> None:
    """By its path; what is false, zero or empty says nothing."""
    fields = {"a": True, "b": 0, "c": [1], "d": [], "e": "other"}

    found = list(by_table(fields, "spec", {"a": "no a", "b": "no b"}, {"c": "c?", "d": "d?"}))

    assert found == [FieldProblem("spec.a", "no a"), FieldNote("spec.c", "c?")]


def test_found_values_are_shown_in_short() -> None:
    """A mapping by the name in it, if it has one."""
    assert shown([{"name": "net.a", "value": "1"}, {"level": "s0"}, 7]) == "net.a, a mapping, 7"
