"""``$(VAR)``, as the kubelet expands it."""

from __future__ import annotations

import pytest

from vk_provider.pods.expansion import expand, unknown_names


@pytest.mark.parametrize(
    ("value", "expanded"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)z", "x1y2z"),
        ("$(A)$(A)", "11"),
        ("$(MISSING)", "$(MISSING)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$(A", "$(A"),
        ("$(A$(B)", "$(A$(B)"),
        ("$A", "$A"),
        ("$", "$"),
        ("cost: 5$", "cost: 5$"),
        ("$()", "$()"),
        ("$(EMPTY)", ""),
        ("$(NESTED)", "$(A)"),
        ("", ""),
    ],
)
def test_references_expand_once(value: str, expanded: str) -> None:
    """Known names are replaced, ``$$`` is a ``$``, everything else stays as it is written."""
    assert expand(value, {"A": "1", "B": "2", "EMPTY": "", "NESTED": "$(A)"}) == expanded


def test_unknown_names_are_listed_in_order() -> None:
    """Escaped ones are no names."""
    assert unknown_names("$(B)/$(A)/$$(C)/$(D)", {"A": "1"}) == ("B", "D")
