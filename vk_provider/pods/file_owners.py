"""Where a volume of files says whom its files belong to. Pure.

A provider whose containers write their own files can't follow it, and says so.
Fed by the volumes of a pod; feeds the notes of translations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_OWNERS = ("user", "defaultUser")


def file_owners(source: Any, path: str) -> Iterator[str]:
    """The field paths below ``path`` that name an owner of files, in ``source`` or inside of it."""
    if isinstance(source, Mapping):
        for key, value in source.items():
            if key in _OWNERS and value is not None:
                yield f"{path}.{key}"
            yield from file_owners(value, f"{path}.{key}")
    elif isinstance(source, list | tuple):
        for index, value in enumerate(source):
            yield from file_owners(value, f"{path}[{index}]")
