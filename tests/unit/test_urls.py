"""Addresses of HTTP servers."""

from __future__ import annotations

import pytest

from vk_provider.urls import http_url


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("https://10.0.0.1:6443", "10.0.0.1", 6443),
        ("http://[::1]:80/a/path", "::1", 80),
        ("https://me:word@host", "host", None),
    ],
)
def test_an_address_has_its_parts(text: str, host: str, port: int | None) -> None:
    """A password among them, for a better sentence."""
    parts = http_url(text)

    assert parts is not None
    assert (parts.hostname, parts.port) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        "host:6443",
        "ftp://x",
        "https://",
        "http://[",
        "https://a]b",
        "https://a:99999",
        "https://a:0",
        "https://a?b=c",
        "https://a#b",
    ],
)
def test_what_nobody_can_connect_to_is_none(text: str) -> None:
    """Before anybody tries."""
    assert http_url(text) is None


@pytest.mark.parametrize("text", ["", "https://a b", "https://a\n"])
def test_an_address_is_one_word(text: str) -> None:
    """A line's end would be lost on the way."""
    assert http_url(text) is None
