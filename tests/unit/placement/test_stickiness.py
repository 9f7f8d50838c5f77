"""Where the pods of a StatefulSet ran."""

from __future__ import annotations

from vk_provider.placement import stickiness
from vk_provider.placement.needs import Place
from vk_provider.placement.stickiness import Ordinals


def test_the_last_place_of_an_ordinal_is_known() -> None:
    """Each ordinal has its own."""
    ordinals = Ordinals()
    ordinals.note("default/db-0", Place("a", "EU"))
    ordinals.note("default/db-1", Place("b"))
    ordinals.note("default/db-1", Place("a", "US"))
    assert ordinals.predecessor("default/db-0") == Place("a", "EU")
    assert ordinals.predecessor("default/db-1") == Place("a", "US")
    assert ordinals.predecessor("default/db-2") is None


def test_a_place_without_a_data_centre_does_not_take_away_what_is_known() -> None:
    """An offer may leave it open; then the instance tells, and stays where it is."""
    ordinals = Ordinals()
    ordinals.note("default/db-0", Place("a", "EU"))
    ordinals.note("default/db-0", Place("a"))
    assert ordinals.predecessor("default/db-0") == Place("a", "EU")
    ordinals.note("default/db-0", Place("b"))
    assert ordinals.predecessor("default/db-0") == Place("b")


def test_the_memory_is_bounded() -> None:
    """The ordinal that was not heard of for longest goes first."""
    ordinals = Ordinals()
    for number in range(stickiness.MOST_ORDINALS):
        ordinals.note(f"default/db-{number}", Place("a"))
    ordinals.note("default/db-0", Place("a"))
    ordinals.note("default/new-0", Place("a"))
    assert ordinals.predecessor("default/db-0") == Place("a")
    assert ordinals.predecessor("default/db-1") is None
