"""Whether a text is the address of an HTTP server. Pure.

Fed by configurations and kubeconfigs; what is none of them is refused before anybody connects.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

__all__ = ["http_url"]


def http_url(text: str) -> SplitResult | None:
    """The parts of ``http(s)://HOST[:PORT][/PATH]``; None for anything else, such as a host that
    is none, a port beyond 65535, a query. User name and password are the caller's to refuse."""
    try:
        parts = urlsplit(text)
        has_port = parts.port != 0
    except ValueError:
        return None
    is_http = parts.scheme in ("http", "https") and not (parts.query or parts.fragment)
    host = parts.hostname or ""
    # A tab or a line's end is lost on the way into the parts.
    is_one_word = host != "" and not any(c.isspace() for c in text)
    return parts if is_http and has_port and is_one_word else None
