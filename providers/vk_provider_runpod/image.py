"""Image references as RunPod takes them; anything malformed is refused before it costs a call.

Pure. Fed by ``translate``.
"""

from __future__ import annotations

import re

_HOST = (
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
)
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:{_HOST}(?::\d+)?/)?{_PART}(?:/{_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
ALLOWED = "[HOST[:PORT]/]PATH[:TAG][@sha256:DIGEST], the path in lower case"


def normalised(image: str) -> str | None:
    """The reference without surrounding blanks, None where it is malformed."""
    bare = image.strip()
    return bare if _REFERENCE.fullmatch(bare) else None
