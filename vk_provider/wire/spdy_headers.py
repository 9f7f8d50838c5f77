"""PURE, sans-I/O. The header blocks of SPDY/3.1: compressed bytes become headers, and back.

A block before compression: u32 count, then for each u32 length + name, u32 length + value. Names
are lower case; several values are joined by NUL (SPDY/3 draft, 2.6.10). Each direction is **one**
zlib stream for the life of the connection, with a preset dictionary and a sync flush after each
block: every block that arrives must go through, also that of a stream which is then refused.
Fed by :mod:`.spdy_receive`; feeds the events of :mod:`.spdy`.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from struct import Struct

from vk_provider.faults import WireError

_LENGTH = Struct("!I")

# SPDY/3 draft, 2.6.10.1: first length-prefixed words, then a text without any structure.
_WORDS_BEFORE = (
    "options head post put delete trace accept accept-charset accept-encoding "
    "accept-language accept-ranges age allow authorization cache-control "
    "connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect "
    "expires from host if-match if-modified-since if-none-match if-range "
    "if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server "
    "te trailer transfer-encoding upgrade user-agent vary via warning "  # codespell:ignore te
    "www-authenticate method get status"
)
_WORDS_AFTER = "version HTTP/1.1 url public set-cookie keep-alive origin"
_TEXT = (
    "100101201202205206300302303304305306307402"
    "405406407408409410411412413414415416417502504505203 Non-Authoritative Information204 "
    "No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not "
    "Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar "
    "Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, "
    "GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,"
    "sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _dictionary() -> bytes:
    words = [*_WORDS_BEFORE.split(), "200 OK", *_WORDS_AFTER.split()]
    prefixed = [_LENGTH.pack(len(word)) + word.encode() for word in words]
    return b"".join([*prefixed, _TEXT.encode()])


DICTIONARY = _dictionary()
"""1423 bytes, adler32 e3c6a7c2."""

FORBIDDEN = frozenset({"connection", "host", "keep-alive", "proxy-connection", "transfer-encoding"})
"""Draft, 3.2.1: names that mean something in HTTP/1.1 only."""


class HeaderReader:
    """The peer's zlib stream. Any fault is final: what follows can't be read any more."""

    def __init__(self, max_bytes: int, max_headers: int) -> None:
        self._max_bytes = max_bytes
        self._max_headers = max_headers
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def read(self, block: bytes) -> dict[str, str]:
        """The headers of a block: names in lower case, the first value of each.

        Raises:
            WireError: no zlib, too large when inflated, or no header block.
        """
        try:
            # One byte more than allowed, so that a bomb shows without being inflated.
            plain = self._inflate.decompress(block, self._max_bytes + 1)
        except zlib.error as error:
            raise WireError(f"header block can't be inflated: {error}") from error
        if len(plain) > self._max_bytes:
            raise WireError(f"header block of more than {self._max_bytes} bytes")
        if self._inflate.unconsumed_tail or self._inflate.unused_data:
            raise WireError("header block has bytes after its end")
        return parse_headers(plain, self._max_headers)


def parse_headers(plain: bytes, max_headers: int) -> dict[str, str]:
    """The headers of an inflated block.

    Raises:
        WireError: lengths that don't fit, upper case, a duplicate, or a forbidden name.
    """
    fields = _Fields(plain)
    count = fields.number()
    if count > max_headers:
        raise WireError(f"header block with {count} headers; at most {max_headers} are accepted")
    headers: dict[str, str] = {}
    for _ in range(count):
        name = fields.text()
        if name != name.lower() or name in headers or name in FORBIDDEN:
            raise WireError(f"header {name[:64]!r}: in upper case, repeated or forbidden")
        headers[name] = fields.text().split("\0", 1)[0]
    if fields.left:
        raise WireError(f"header block with {fields.left} bytes after its last header")
    return headers


class HeaderWriter:
    """Our zlib stream. Its small window suits the few headers that a server of streams sends:
    10 KiB of memory a connection instead of 260."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(level=9, wbits=11, memLevel=1, zdict=DICTIONARY)

    def write(self, headers: Mapping[str, str]) -> bytes:
        """The compressed block of these headers. Its place in the byte stream is fixed by this
        call: blocks must be sent in the order in which they were made."""
        fields = [_LENGTH.pack(len(headers))]
        for name, value in headers.items():
            for text in (name.lower().encode("latin-1"), value.encode("latin-1")):
                fields += [_LENGTH.pack(len(text)), text]
        return self._deflate.compress(b"".join(fields)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


class _Fields:
    """A cursor over an inflated block that never reads beyond it."""

    def __init__(self, plain: bytes) -> None:
        self._plain = plain
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._plain) - self._at

    def number(self) -> int:
        return int(_LENGTH.unpack(self._take(_LENGTH.size))[0])

    def text(self) -> str:
        return self._take(self.number()).decode("latin-1")

    def _take(self, size: int) -> bytes:
        if size > self.left:
            raise WireError(f"header block ends {size - self.left} bytes too early")
        self._at += size
        return self._plain[self._at - size : self._at]
