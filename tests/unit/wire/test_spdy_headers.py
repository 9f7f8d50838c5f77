"""Header blocks: the preset dictionary, one zlib stream per direction, and no bombs."""

import hashlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.peer import Peer, block, words
from vk_provider.faults import WireError
from vk_provider.wire.spdy_headers import DICTIONARY, HeaderReader, HeaderWriter, parse_headers

NAMES = st.text("abcdefgh-", min_size=1, max_size=20)
VALUES = st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=40)


def test_the_dictionary_is_that_of_the_draft() -> None:
    """One wrong byte and no peer understands us."""
    assert len(DICTIONARY) == 1423
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2
    assert hashlib.sha256(DICTIONARY).hexdigest() == (
        "51d27341373f923f3cd88e1eb7162aeaa3723d7585ff2399201dc06498407f02"
    )


def test_the_blocks_of_kubectl_are_read_in_order() -> None:
    """They share one zlib stream."""
    reader = HeaderReader(1000, 10)

    blocks = [
        "78f9e3c6a7c26260606004a7b392a2d4c45c6851c29a0a0a6800000000ffff",
        "c22ac5565c92925f5a02000000ffff",
        "c229975a5404000000ffff",
    ]

    assert [reader.read(bytes.fromhex(one)) for one in blocks] == [
        {"streamtype": "error"},
        {"streamtype": "stdout"},
        {"streamtype": "stderr"},
    ]


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=4), max_size=5))
def test_what_is_written_reads_back(many: list[dict[str, str]]) -> None:
    """In the order of writing."""
    writer, reader = HeaderWriter(), HeaderReader(10_000, 10)

    assert [reader.read(writer.write(headers)) for headers in many] == many


def test_of_several_values_the_first_counts() -> None:
    """As Go's Header.Get does."""
    assert parse_headers(block({"port": "80\x0081"}), 10) == {"port": "80"}


def test_a_bomb_is_not_inflated() -> None:
    """6 KiB would become 6 MB."""
    bomb = Peer().pack(block({"a": "x" * 6_000_000}))

    with pytest.raises(WireError, match="header block of more than 1000 bytes"):
        HeaderReader(1000, 10).read(bomb)


def test_a_block_of_exactly_the_limit_is_read() -> None:
    """The limit is what may be, not what may not."""
    plain = block({"a": "x" * 87})

    assert HeaderReader(len(plain), 10).read(Peer().pack(plain)) == {"a": "x" * 87}


@pytest.mark.parametrize("raw", [b"no zlib", Peer().pack(block({}))[4:]])
def test_what_is_no_zlib_is_a_fault(raw: bytes) -> None:
    """And not an exception of the library."""
    with pytest.raises(WireError, match="can't be inflated"):
        HeaderReader(1000, 10).read(raw)


def test_bytes_behind_the_end_of_the_zlib_stream_are_a_fault() -> None:
    """The stream never ends, so nothing can follow its end."""
    deflate = zlib.compressobj(zdict=DICTIONARY)
    raw = deflate.compress(block({})) + deflate.flush(zlib.Z_FINISH) + b"more"

    with pytest.raises(WireError, match="bytes after its end"):
        HeaderReader(1000, 10).read(raw)


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        (b"", "ends 4 bytes too early"),
        (words(1), "ends 4 bytes too early"),
        (words(1, 0xFFFF_FFFF), "too early"),
        (words(1, 1) + b"a" + words(2) + b"x", "ends 1 bytes too early"),
        (words(11), "11 headers; at most 10 are accepted"),
        (block({"Port": "1"}), "upper case, repeated or forbidden"),
        (words(2) + block({"a": ""})[4:] * 2, "upper case, repeated or forbidden"),
        (block({"host": ""}), "upper case, repeated or forbidden"),
        (block({}) + b"x", "1 bytes after its last header"),
    ],
)
def test_a_malformed_block_is_a_fault(plain: bytes, message: str) -> None:
    """Go's reader ends the connection for each of them, too."""
    with pytest.raises(WireError, match=message):
        parse_headers(plain, 10)
