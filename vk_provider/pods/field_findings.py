"""Fields of a pod that are refused or noted, by tables of them. Pure.

Fed by the tables of a translation; feeds its refusals and notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.pods.types import FieldNote, Json

Finding = FieldProblem | FieldNote


def by_table(
    fields: Json, path: str, refused: Mapping[str, str], noted: Mapping[str, str]
) -> Iterator[Finding]:
    """A refusal for each field of ``refused`` that says something, then a note for each of
    ``noted``. Absent, false, zero and empty say nothing. The tables: field -> why."""
    for key, why in refused.items():
        if fields.get(key):
            yield FieldProblem(f"{path}.{key}", why)
    for key, why in noted.items():
        if fields.get(key):
            yield FieldNote(f"{path}.{key}", why)


def shown(value: Any) -> str:
    """What was found, for a message: of a mapping only the name."""
    if isinstance(value, list):
        return ", ".join(shown(entry) for entry in value)
    # A sysctl, an SELinux option: its name says enough.
    return str(value.get("name", "a mapping")) if isinstance(value, Mapping) else str(value)
