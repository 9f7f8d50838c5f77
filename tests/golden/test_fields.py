"""No field of a pod is dropped without a word, and the documentation says what becomes of each."""

from __future__ import annotations

import pytest

from tests.fields.pages import (
    DOCS,
    MODAL,
    PAGES,
    RUNPOD,
    found_at,
    make_modal,
    make_runpod,
    page,
)
from vk_provider.testing.field_probe import Fate

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
