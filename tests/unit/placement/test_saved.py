"""The spend as a line of text."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from vk_provider.placement.meters import Meters, Now
from vk_provider.placement.readings import Key, Reading
from vk_provider.placement.saved import Saved, parse, render, saved_of

SAVED = Saved(
    datetime(2026, 1, 31, 12, tzinfo=UTC),
    {"2026-01": {"": 12.5, "team": 2.25}},
    {"runpod": {"team": 1.99}},
)


def test_it_reads_what_it_wrote() -> None:
    """Rounded to a millionth of a dollar."""
    text = render(replace(SAVED, rates={"runpod": {"team": 1.99 + 1e-9}}))
    assert parse(text) == SAVED
    assert "\n" not in text


def test_of_very_many_namespaces_the_dearest_are_remembered() -> None:
    """A Node's annotations are bounded, and namespaces may be made for each change to be tried."""
    sums = {"": 0.5, **{f"preview-{number}": float(number) for number in range(10_000)}}
    text = render(replace(SAVED, spent={"2026-01": sums, "2026-01-31": sums}))
    found = parse(text)
    assert found is not None
    assert {"", "preview-9999", "preview-9501"} < found.spent["2026-01"].keys()
    assert len(text) < 64 * 1024


def test_what_the_meters_show_since_the_last_list_is_saved_too() -> None:
    """Of an instance that no list has shown yet as well; what costs nothing is not."""
    meters = Meters()
    noon = Now(datetime(2026, 1, 31, 12, tzinfo=UTC), 0.0)
    later = Now(datetime(2026, 1, 31, 13, tzinfo=UTC), 3600.0)
    for name, price in (("a", 2.0), ("b", 1.0), ("free", 0.0)):
        meters.begin(Reading(Key("runpod", name), "team", name, price), noon)
    meters.take("runpod", [Reading(Key("runpod", "a"), "team", "a", 2.0)], noon, 7200)
    assert saved_of(meters, later) == Saved(
        later.calendar,
        {"2026-01": {"": 3.0, "team": 3.0}, "2026-01-31": {"": 3.0, "team": 3.0}},
        {"runpod": {"team": 3.0}},
    )


def test_the_time_alone_is_no_news() -> None:
    """At rest nothing is written."""
    assert not replace(SAVED, at=datetime(2027, 1, 1, tzinfo=UTC)).is_news(SAVED)
    assert replace(SAVED, rates={}).is_news(SAVED)
    assert SAVED.is_news(None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"at":"2026-01-31","spent":{},"rates":{}}',
        '{"at":"9999-12-31T23:00:00-14:00","spent":{},"rates":{}}',
        '{"at":"yesterday","spent":{},"rates":{}}',
        '{"at":"2026-01-31T00:00:00Z","spent":[],"rates":{}}',
        '{"at":"2026-01-31T00:00:00Z","spent":{"2026-01":{"":-1}},"rates":{}}',
        '{"at":"2026-01-31T00:00:00Z","spent":{"2026-01":{"":NaN}},"rates":{}}',
        '{"at":"2026-01-31T00:00:00Z","spent":{"2026-01":{"":null}},"rates":{}}',
        "[" * 100_000,
    ],
)
def test_what_makes_no_sense_is_no_line(text: str) -> None:
    """Somebody may have edited it; a node starts nevertheless."""
    assert parse(text) is None
