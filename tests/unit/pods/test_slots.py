"""The record's own readings."""

import pytest

from tests.unit.pods.situations import NOW, STAMP, UID, live, new
from vk_provider.pods.slots import Existence, Record


def test_the_stamp_is_the_one_that_was_observed() -> None:
    """Before anything was listed there is none."""
    assert Record(UID, NOW).stamp is None
    assert live().stamp == STAMP


@pytest.mark.parametrize("exists", list(Existence))
def test_only_presence_and_doubt_mean_that_an_instance_may_exist(exists: Existence) -> None:
    """Confirmed absence and "none was made" do not."""
    record = new(exists=exists)

    assert record.may_exist == (exists in (Existence.PRESENT, Existence.UNKNOWN))
