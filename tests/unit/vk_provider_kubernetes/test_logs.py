"""What is asked for a log, and how a line is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from vk_provider_kubernetes.logs import EPOCH, Lines, parse_line, query_of

from vk_provider.pods.types import LogLine, LogOptions
from vk_provider.streams import LONGEST_LINE_BYTES

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def test_times_are_always_asked_for() -> None:
    """They are the other kubelet's."""
    assert query_of("main", LogOptions()) == [("container", "main"), ("timestamps", "true")]


def test_what_the_client_asked_goes_along() -> None:
    """The moment in UTC, in whole seconds."""
    since = NOON.astimezone(timezone(timedelta(hours=2))) + timedelta(milliseconds=700)
    options = LogOptions(follow=True, previous=True, tail_lines=5, since=since)

    assert dict(query_of("main", options)) == {
        "container": "main",
        "timestamps": "true",
        "follow": "true",
        "previous": "true",
        "tailLines": "5",
        "sinceTime": "2026-11-01T12:00:00Z",
    }


@pytest.mark.parametrize(
    ("stamp", "moment"),
    [
        (b"2026-11-01T12:00:00Z", NOON),
        (b"2026-11-01T12:00:00.5Z", NOON + timedelta(milliseconds=500)),
        (b"2026-11-01T12:00:00.123456789Z", NOON + timedelta(microseconds=123456)),
        (b"2026-11-01T14:00:00.000000001+02:00", NOON),
    ],
)
def test_a_line_has_its_time_in_front(stamp: bytes, moment: datetime) -> None:
    """With up to nine digits of a second."""
    found = parse_line(stamp + b" hello  world ", EPOCH)

    assert (found.timestamp, found.text) == (moment, b"hello  world ")


@pytest.mark.parametrize("raw", [b"no time", b"2026-11-01T12:00:00 no zone", b"", b"\xff\xfe x"])
def test_a_line_without_a_time_belongs_to_the_one_before(raw: bytes) -> None:
    """Nothing of it is lost."""
    found = parse_line(raw, NOON)

    assert (found.timestamp, found.text) == (NOON, raw)


def test_a_line_that_never_ends_comes_in_pieces() -> None:
    """A container that prints no newline must not fill our memory. All pieces are of one moment."""
    lines, chunk = Lines(), b"x" * 100_000
    found = [*lines.feed(b"2026-11-01T12:00:00Z "), *lines.feed(b"a\n")]
    for _ in range(100):
        found += lines.feed(chunk)
        assert len(lines._begun) <= LONGEST_LINE_BYTES
    found += [*lines.rest(), *lines.rest()]

    assert found[0] == LogLine(NOON, b"a")
    assert b"".join(line.text for line in found[1:]) == chunk * 100
    assert {line.timestamp for line in found} == {NOON}
