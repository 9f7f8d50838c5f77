"""The resize stream: sizes as they complete, and no stopping at nonsense."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.peer import cut
from vk_provider.wire.resize import Resize, ResizeReader

SIDES = st.integers(1, 0xFFFF)


def test_objects_follow_each_other_with_or_without_a_newline() -> None:
    """Go's encoder writes one; keys may be in any case."""
    chunk = b'{"Width":80,"Height":24}\n{"width":1,"HEIGHT":2}{"Height":3,"Width":4}'

    assert ResizeReader().feed(chunk) == [Resize(80, 24), Resize(1, 2), Resize(4, 3)]


@given(st.lists(st.tuples(SIDES, SIDES), max_size=5), st.lists(st.integers(0, 200)))
def test_bytes_cut_anywhere_give_the_same_sizes(
    sizes: list[tuple[int, int]], places: list[int]
) -> None:
    """SPDY frames keep no borders of objects."""
    raw = "\n".join(json.dumps({"Width": w, "Height": h}) for w, h in sizes).encode()
    reader = ResizeReader()

    found = [size for chunk in cut(raw, places) for size in reader.feed(chunk)]

    assert found == [Resize(*size) for size in sizes]


@pytest.mark.parametrize(
    "chunk",
    [
        b'{"Width":0,"Height":24}',
        b'{"Width":80,"Height":-1}',
        b'{"Width":65536,"Height":24}',
        b'{"Width":true,"Height":24}',
        b'{"Width":"80","Height":24}',
        b'{"Width":80}',
        b"{}",
        b"{Width}",
        b'{"a":[[[[1]]]]}',
        b"\xff\xfe}}}",
        b'{"a":"' + b"x" * 1000 + b'"}',
        b"[" * 5000,
    ],
)
def test_what_is_no_size_is_skipped(chunk: bytes) -> None:
    """A kubelet passes on sizes of at least 1 by 1."""
    reader = ResizeReader()

    assert reader.feed(chunk) == []
    assert reader.feed(b'{"Width":80,"Height":24}') == [Resize(80, 24)]


def test_what_never_completes_is_not_collected() -> None:
    """Bounded by 256 bytes, whatever arrives."""
    reader = ResizeReader()

    reader.feed(b'{"a":' * 100_000)

    assert reader.pending_bytes <= 256
