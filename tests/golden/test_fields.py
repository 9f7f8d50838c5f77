"""No field of a pod is dropped without a word, and the documentation says what becomes of each."""

from __future__ import annotations

import pytest
from vk_provider_kubernetes.rules import Action, coverage

from tests.fields.pages import (
    DOCS,
    MODAL,
    PAGES,
    RUNPOD,
    found_at,
    make_kubernetes,
    make_modal,
    make_runpod,
    page,
)
from vk_provider.testing.field_probe import Fate, probe

LATER = "spec.ephemeralContainers"
AGREEING = {
    Action.SEND: {Fate.SENT, Fate.REWRITTEN, Fate.RESOLVED, Fate.HOME},
    Action.REWRITE: {Fate.SENT, Fate.REWRITTEN, Fate.RESOLVED, Fate.HOME, Fate.SILENT},
    Action.RESOLVE: {Fate.RESOLVED, Fate.REWRITTEN, Fate.SENT},
    Action.IGNORE: {Fate.IGNORED},
    Action.REJECT: {Fate.REFUSED},
}
"""What the table says -> what may be found. Equal values in other words are the same."""
PROBED = {"modal": (make_modal, MODAL), "runpod": (make_runpod, RUNPOD)}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_does(name: str) -> None:
    """`make fields` writes it anew."""
    assert (DOCS / name).read_text() == page(name), f"docs/{name} is out of date: `make fields`"


@pytest.mark.parametrize("name", PROBED)
def test_no_field_is_dropped_in_silence(name: str) -> None:
    """Under no configuration: sent, told in a note, refused by its path, or home's own business."""
    silent = {
        each.path for found in found_at(*PROBED[name]) for each in found if each.fate is Fate.SILENT
    }

    assert not silent


def test_another_clusters_table_is_what_its_translation_does() -> None:
    """Asked field by field: what the table sends arrives, what it refuses is refused."""
    rules = dict(coverage())
    # They are added to a pod that runs, and never made with it.
    found = [each for each in probe(make_kubernetes()) if not each.path.startswith(LATER)]

    differing = [
        f"{each.path}: {rules[each.path].action}, and it is {each.fate}"
        for each in found
        if each.fate not in AGREEING[rules[each.path].action]
    ]

    assert len(found) > 150
    assert differing == []
