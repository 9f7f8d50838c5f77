"""The last words of ended containers, in bounded memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

from vk_provider.loops import kept_logs
from vk_provider.loops.kept_logs import KeptLogs, last_words, read_tail
from vk_provider.pods.types import LogLine, PodUID

AT = datetime(2026, 1, 1, tzinfo=UTC)
A, B, C = PodUID("a"), PodUID("b"), PodUID("c")


def line(text: bytes) -> LogLine:
    """One line."""
    return LogLine(AT, text)


async def stream(*texts: bytes) -> AsyncIterator[LogLine]:
    """A log that is read."""
    for text in texts:
        yield line(text)


def test_a_newer_tail_replaces_the_older() -> None:
    """By pod and container."""
    kept = KeptLogs()
    kept.keep(A, "main", [line(b"old")])
    kept.keep(A, "main", [line(b"new")])
    kept.keep(A, "side", [line(b"s")])
    assert {name: lines[0].text for name, lines in kept.of(A).items()} == {
        "main": b"new",
        "side": b"s",
    }
    kept.drop(A)
    kept.drop(A)
    assert not kept.of(A)


def test_the_pods_longest_ago_are_dropped_first() -> None:
    """The sum is bounded whatever the number of pods; the latest always stays."""
    kept = KeptLogs()
    third = [line(b"x" * (kept_logs.BYTES_IN_ALL // 3))]
    for uid in (A, B):
        kept.keep(uid, "main", third)
    kept.keep(A, "main", third)
    kept.keep(C, "main", third)
    assert kept.of(A)
    assert not kept.of(B)
    assert kept.of(C)
    kept.keep(A, "main", [line(b"x" * 2 * kept_logs.BYTES_IN_ALL)])
    assert kept.of(A)
    assert not kept.of(C)


async def test_a_tail_is_whole_lines_of_64_kib() -> None:
    """The end of the log counts, not its beginning."""
    tail = await read_tail(stream(*[b"%06d" % number + b"." * 93 for number in range(2000)]))
    assert tail[-1].text.startswith(b"001999")
    assert sum(len(each.text) + 1 for each in tail) <= kept_logs.BYTES_PER_CONTAINER
    assert len(tail) == kept_logs.BYTES_PER_CONTAINER // 100
    assert await read_tail(stream(b"x" * 100_000)) == ()


def test_last_words_are_80_lines_and_2_kib() -> None:
    """As a kubelet's termination message."""
    assert last_words([line(b"%d" % n) for n in range(100)]).splitlines()[0] == "20"
    assert len(last_words([line(b"x" * 5000)])) == 2048
    assert last_words([line(b"\xff")]) == "�"
    assert last_words([]) == ""
