"""The reference: which specs, and the expression that names exactly them."""

import re

import pytest

from tests.official.reference import LISTS, focus, specs


def test_the_reference_is_what_a_real_node_passed() -> None:
    """Each of them once, of two groups."""
    wanted = specs()

    assert len(wanted) == len(set(wanted)) == 186
    assert {spec.partition("]")[0] for spec in wanted} == {"[sig-node", "[sig-cli"}


def test_the_focus_names_these_specs_and_no_other() -> None:
    """Brackets, stars and slashes are meant as they stand."""
    one, other = "[sig-node] a.b *not* (x|y) /c$", "[sig-node] axb not x"

    pattern = re.compile(focus([one]))

    assert pattern.search(f"Kubernetes e2e suite {one}")
    assert not pattern.search(f"Kubernetes e2e suite {other}")
    assert not pattern.search(f"Kubernetes e2e suite {one} and more")


@pytest.mark.parametrize("name", LISTS)
def test_every_spec_of_a_list_is_named_by_the_focus(name: str) -> None:
    """Nothing is lost between the list and the command line."""
    wanted = specs(name)
    pattern = re.compile(focus(wanted))

    assert len(wanted) == len(set(wanted))
    assert all(pattern.search(f"Kubernetes e2e suite {spec}") for spec in wanted)
