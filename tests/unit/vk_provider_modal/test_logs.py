"""Pieces of output as lines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from vk_provider_modal.facts import LogPiece
from vk_provider_modal.logs import Lines, Seen

START = datetime(2027, 1, 1, tzinfo=UTC)


def piece(text: str, second: float = 0, source: str = "stdout") -> LogPiece:
    """A piece so many seconds after the start."""
    return LogPiece(START + timedelta(seconds=second), source, text)


def test_a_line_has_the_time_of_its_first_piece() -> None:
    """Streams don't mix."""
    lines = Lines()

    found = [
        *lines.feed(piece("be")),
        *lines.feed(piece("other\n", 1, "stderr")),
        *lines.feed(piece("gun\nand\nrest", 2)),
        *lines.rest(),
    ]

    assert [(line.text, (line.timestamp - START).seconds) for line in found] == [
        (b"other", 1), (b"begun", 0), (b"and", 2), (b"rest", 2),
    ]  # fmt: skip


def test_a_line_that_never_ends_comes_in_pieces() -> None:
    """A container that prints no newline must not fill our memory."""
    lines = Lines()
    found = [line for _ in range(10) for line in lines.feed(piece("x" * 100_000))]
    assert [len(line.text) for line in [*found, *lines.rest()]] == [300_000] * 3 + [100_000]


def test_what_comes_again_is_known() -> None:
    """Also where one moment has two equal pieces."""
    seen = Seen()
    first = [piece("a\n"), piece("b\n", 1), piece("b\n", 1)]
    assert [seen.is_new(each) for each in first] == [True, True, True]

    seen.ask_again()
    again = [piece("a\n"), *first[1:], piece("b\n", 1), piece("c\n", 2)]

    assert [seen.is_new(each) for each in again] == [False, False, False, True, True]
