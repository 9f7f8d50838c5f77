"""Reading JSON that may be malformed: absent or wrongly typed parts read as empty.

The API server validates pods, but `explain` takes what a person typed; resolving must never raise
because of it (the provider's translation names what is wrong).
Fed by any JSON object; feeds the other modules of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vk_provider.pods.types import Json

_EMPTY: Json = {}
_OBJECT = (dict, Mapping)
"""``dict`` is what JSON decodes to; asking for it first is many times faster."""


def mapping(parent: Json, key: str) -> Json:
    """The object under ``key``, or an empty one."""
    value = parent.get(key)
    return value if isinstance(value, _OBJECT) else _EMPTY


def mappings(parent: Json, key: str) -> list[tuple[int, Json]]:
    """The objects of the list under ``key``, each with its index (for field paths)."""
    value = parent.get(key)
    found = value if isinstance(value, list | tuple) else ()
    return [(index, item) for index, item in enumerate(found) if isinstance(item, _OBJECT)]


def text(parent: Json, key: str) -> str:
    """The string under ``key``, or an empty one."""
    value = parent.get(key)
    return value if isinstance(value, str) else ""


def texts(parent: Json, key: str) -> tuple[str, ...] | None:
    """The list of strings under ``key``; None where there is none or it is empty."""
    value = parent.get(key)
    if not isinstance(value, list | tuple) or not value:
        return None
    return tuple(str(item) for item in value)


def strings(parent: Json, key: str) -> Mapping[str, str]:
    """The map of strings under ``key`` without entries of any other type."""
    found: Mapping[Any, Any] = mapping(parent, key)
    return {name: value for name, value in found.items() if isinstance(value, str)}


def number(parent: Json, key: str) -> int | None:
    """The integer under ``key``, or None."""
    value = parent.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
