"""PURE. The resize stream: JSON objects one after the other, cut anywhere.

client-go sends ``{"Width":80,"Height":24}`` and a newline for each change; Go reads the keys in any
case, as 16 bits unsigned, and a kubelet passes on only sizes of at least 1 by 1.
Fed by both transports of exec and attach; feeds Resize events.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

MAX_BYTES = 256
"""No object of ours is longer; what grows beyond is no resize."""

_OBJECT = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Resize:
    """The client's terminal has another size: columns and rows."""

    width: int
    height: int


class ResizeReader:
    """Keeps what is incomplete, at most MAX_BYTES of it."""

    def __init__(self) -> None:
        self._pending = ""

    @property
    def pending_bytes(self) -> int:
        """How much is kept."""
        return len(self._pending)

    def feed(self, chunk: bytes) -> list[Resize]:
        """The sizes that this chunk completes. Objects that are no size are skipped."""
        resizes: list[Resize] = []
        for start in range(0, len(chunk), MAX_BYTES):
            self._pending += chunk[start : start + MAX_BYTES].decode("latin-1")
            end = 0
            for match in _OBJECT.finditer(self._pending):
                end = match.end()
                resizes += _resize(match[0])
            self._pending = self._pending[end:][-MAX_BYTES:]
        return resizes


def _resize(text: str) -> list[Resize]:
    try:
        # Without braces inside only lists nest, and MAX_BYTES of them are no danger to the stack.
        fields = {key.lower(): value for key, value in json.loads(text).items()}
    except ValueError:
        return []
    width, height = _side(fields.get("width")), _side(fields.get("height"))
    return [Resize(width, height)] if min(width, height) > 0 else []


def _side(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if value <= 0xFFFF else 0
