"""What is known of the time before us."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from vk_provider.placement.readings import Key, Reading
from vk_provider.placement.resumed import Resumed

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def reading(namespace: str, price: float | None, began: datetime | None) -> Reading:
    """An instance of a list."""
    return Reading(Key("b", str(began)), namespace, "uid", price, began)


def test_an_instance_is_ours_to_reckon_from_what_was_saved() -> None:
    """Without a predecessor from its own beginning."""
    assert Resumed().since(AT) == AT
    assert Resumed(AT).since(AT - HOUR) == AT
    assert Resumed(AT).since(AT + HOUR) == AT + HOUR


def test_what_is_gone_ran_until_now() -> None:
    """What is there still, or is new, is another matter; each backend is looked at once."""
    resumed = Resumed(AT, {"b": {"team": 10.0, "other": 1.0}})
    there = [
        reading("team", 6.0, AT - HOUR),
        reading("team", None, AT - HOUR),
        reading("team", 3.0, AT + HOUR),
        reading("team", 3.0, None),
        reading("other", 1.0, AT - HOUR),
    ]
    assert list(resumed.gone("b", there, AT + 2 * HOUR)) == [("team", 8.0)]
    assert list(resumed.gone("b", [], AT + 3 * HOUR)) == []


def test_a_clock_that_went_back_adds_nothing() -> None:
    """Nor does a node without a predecessor."""
    assert list(Resumed(AT, {"b": {"team": 1.0}}).gone("b", [], AT - HOUR)) == []
    assert list(Resumed().gone("b", [], AT)) == []
