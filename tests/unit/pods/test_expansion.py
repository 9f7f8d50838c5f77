"""``$(VAR)``, as the kubelet expands it."""

from __future__ import annotations

import pytest

from vk_provider.pods.expansion import (
    LONGEST,
    Expander,
    expand,
    expanded_length,
    unknown_names,
)
from vk_provider.pods.lookup import Lookup


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
    variables = {"A": "1", "B": "2", "EMPTY": "", "NESTED": "$(A)"}

    assert expand(value, variables) == expanded
    assert expanded_length(value, variables) == len(expanded)


def test_unknown_names_are_listed_in_order() -> None:
    """Escaped ones are no names."""
    assert unknown_names("$(B)/$(A)/$$(C)/$(D)", {"A": "1"}) == ("B", "D")


def test_what_no_process_could_be_started_with_is_not_expanded() -> None:
    """A text of any length may be written, but not be made of a short one."""
    expander = Expander(Lookup("ns", {}))
    variables = {"A": "x" * LONGEST}

    assert expander.expand("$(A)", variables, "spec.a") == variables["A"]
    assert expander.expand(" $(A)", variables, "spec.b") is None
    assert expander.expand("y" * 2 * LONGEST, variables, "spec.c") == "y" * 2 * LONGEST

    (problem,) = expander.lookup.unresolvable
    assert problem.path == "spec.b"
    assert "131073 characters, allowed: 131072" in problem.message


def test_all_expansions_of_a_container_have_one_allowance() -> None:
    """Many that are long enough fill a memory as well as a long one."""
    expander = Expander(Lookup("ns", {}))
    variables = {"A": "x" * 100_000}

    found = [expander.expand("$(A)", variables, f"spec[{n}]") for n in range(30)]

    assert found.count(variables["A"]) == 20
    assert len(expander.lookup.unresolvable) == 10
