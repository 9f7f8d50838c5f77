"""What the API server has room for: annotations up to 256 KiB in all, and messages people read.

Fed by :mod:`.starting`, :mod:`.ending` and :mod:`.writing` before anything is sent: a write that is
refused for its size would be refused for ever, and the pod would show nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from vk_provider.pods.hints import annotations_of
from vk_provider.pods.types import Json

MOST_ANNOTATION_BYTES = 256 * 1024
LONGEST_MESSAGE = 32 * 1024


def missing_bytes(pod: Json, notes: Mapping[str, str]) -> int:
    """By how many bytes the pod's annotations would be too many with ``notes``; 0 if they fit."""
    return max(0, _size({**annotations_of(pod), **notes}) - MOST_ANNOTATION_BYTES)


def fitting(pod: Json, notes: Mapping[str, str]) -> dict[str, str]:
    """Those of ``notes`` that the pod's annotations have room for, the first ones first."""
    kept: dict[str, str] = {}
    for name, value in notes.items():
        if not missing_bytes(pod, {**kept, name: value}):
            kept[name] = value
    return kept


def shortened(message: str) -> str:
    """A message that fits into a status beside everything else; says how much was left out."""
    if len(message) <= LONGEST_MESSAGE:
        return message
    return f"{message[:LONGEST_MESSAGE]}… ({len(message) - LONGEST_MESSAGE} more characters)"


def _size(notes: Mapping[str, str]) -> int:
    return sum(
        len(name.encode()) + len(value.encode(errors="replace")) for name, value in notes.items()
    )
