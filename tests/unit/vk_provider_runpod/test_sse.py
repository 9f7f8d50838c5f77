"""Server-sent events out of bytes."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vk_provider_runpod.sse import LONGEST_FIELD, Event, EventParser, read_line

from vk_provider.pods.types import LogLine

STREAM = (
    'id: 2026-06-01T12:00:00Z/000000000001\ndata: {"line": "grün €"}\n\n'
    ": heartbeat\n\n"
    "id: 2\r\ndata: first\r\ndata: second\r\n\r\n"
    "event: other\nretry: 7\n\n"
    "data:no blank\n\n"
).encode()
EVENTS = [
    Event("2026-06-01T12:00:00Z/000000000001", '{"line": "grün €"}'),
    Event(),
    Event("2", "first\nsecond"),
    Event("2", "no blank"),
]


def test_events_comments_and_unknown_fields() -> None:
    """As the standard reads them."""
    assert EventParser().feed(STREAM) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_bytes_may_be_cut_anywhere(cuts: list[int]) -> None:
    """In the middle of a character or of a line end, too."""
    parser, places = EventParser(), sorted({0, *cuts, len(STREAM)})

    pieces = [STREAM[a:b] for a, b in pairwise(places)]

    assert [event for piece in pieces for event in parser.feed(piece)] == EVENTS


def test_an_unfinished_event_is_held_back() -> None:
    """Its rest may still come."""
    parser = EventParser()

    assert parser.feed(b"data: x\n") == []
    assert parser.feed(b"\n") == [Event("", "x")]
    assert not Event("", "x").is_heartbeat


def test_an_id_with_a_null_is_ignored() -> None:
    """As the standard says."""
    assert EventParser().feed(b"id: a\0b\ndata: x\n\n") == [Event("", "x")]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Event("", '{"ts":"2026-06-01T12:00:00Z","source":"container","line":"a\\r\\n"}'), b"a"),
        (Event("2026-06-01T12:00:00Z/7", '{"source":"container","line":"a"}'), b"a"),
    ],
)
def test_a_line_has_its_time_from_the_payload_or_the_id(event: Event, text: bytes) -> None:
    """Without its line end."""
    assert read_line(event) == (LogLine(datetime(2026, 6, 1, 12, tzinfo=UTC), text), "container")


@pytest.mark.parametrize(
    "data",
    [
        "not json",
        "[]",
        '{"line": 7, "ts": "2026-06-01T12:00:00Z"}',
        '{"line": "x", "ts": "soon"}',
        '{"line": "x", "ts": "2026-06-01T12:00:00"}',
        '{"line": "x"}',
        '{"line": "x", "ts": "0001-01-01T00:00:00Z"}',
        '{"line": "x", "ts": "9999-12-31T23:59:59-10:00"}',
    ],
)
def test_garbage_is_no_line(data: str) -> None:
    """And no exception either."""
    assert read_line(Event("", data)) is None


def test_half_a_character_does_not_end_the_reading() -> None:
    """JSON can spell one, bytes can't."""
    found = read_line(Event("", '{"line": "a\\ud800b", "ts": "2026-06-01T12:00:00Z"}'))

    assert found is not None
    assert found[0].text == b"a?b"


def test_a_line_that_never_ends_is_left_out() -> None:
    """It must not fill our memory; those behind it are read."""
    parser = EventParser()
    for chunk in (b"data: ", b"x" * LONGEST_FIELD, b"x", b"the end\n\n"):
        assert parser.feed(chunk) == []
    assert parser.feed(b"data: next\n\n") == [Event("", "next")]
