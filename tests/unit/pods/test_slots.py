"""The record's own readings."""

from dataclasses import replace

import pytest

from tests.unit.pods.situations import NOW, STAMP, UID, live, new
from vk_provider.pods.slots import Existence, Record, changed


def test_the_stamp_is_the_one_that_was_observed() -> None:
    """Before anything was listed there is none."""
    assert Record(UID, NOW).stamp is None
    assert live().stamp == STAMP


@pytest.mark.parametrize("exists", list(Existence))
def test_only_presence_and_doubt_mean_that_an_instance_may_exist(exists: Existence) -> None:
    """Confirmed absence and "none was made" do not."""
    record = new(exists=exists)

    assert record.may_exist == (exists in (Existence.PRESENT, Existence.UNKNOWN))


def test_a_changed_record_is_what_replace_would_make() -> None:
    """Equal to it in every slot, and the record itself stays as it was."""
    record = live()

    made = changed(record, gone=True, story=("a",))

    assert made == replace(record, gone=True, story=("a",))
    assert record == live()
    with pytest.raises(KeyError, match="no_such_slot"):
        changed(record, no_such_slot=1)
