"""``$(VAR)`` in environment values, commands and arguments, as the kubelet expands it.

Variables may hold variables, so a pod of a few lines can spell a text that fills any memory:
nothing is expanded before its length is known, and what no process could be started with is not.
Fed by :mod:`.environment`, :mod:`.resolve` and :mod:`.volumes`; notes problems in a
:class:`.lookup.Lookup`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vk_provider.pods.lookup import Lookup

LONGEST = 128 * 1024
"""Linux starts no process with a longer variable or argument (MAX_ARG_STRLEN)."""
MOST_GROWTH = 2 * 1024 * 1024
"""What all expansions of one container may add; more does not fit beside a usual stack."""

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(value: str, variables: Mapping[str, str]) -> str:
    """Replace every ``$(NAME)``; ``$$`` becomes ``$``; unknown names stay as they are written."""
    return _REFERENCE.sub(_replacement(variables), value) if "$" in value else value


def expanded_length(value: str, variables: Mapping[str, str]) -> int:
    """How long :func:`expand`'s answer would be."""
    replaced = _replacement(variables)
    found = _REFERENCE.finditer(value) if "$" in value else ()
    return len(value) + sum(len(replaced(match)) - len(match[0]) for match in found)


@dataclass(slots=True)
class Expander:
    """Expands the texts of one container; ``left`` is what they may still grow by."""

    lookup: Lookup
    left: int = MOST_GROWTH

    def expand(self, value: str, variables: Mapping[str, str], path: str) -> str | None:
        """The expanded text, or None after noting that it is too long."""
        length = expanded_length(value, variables)
        growth = max(0, length - len(value))
        if growth > self.left or (growth and length > LONGEST):
            allowed = f"{LONGEST}, and {MOST_GROWTH} more in all than is written"
            self.lookup.refuse(path, f"$(VAR) expands to {length} characters, allowed: {allowed}")
            return None
        self.left -= growth
        return expand(value, variables)


def unknown_names(value: str, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The names ``value`` refers to that are not among ``variables``, in order."""
    names = (match.group(1) for match in _REFERENCE.finditer(value))
    return tuple(name for name in names if name is not None and name not in variables)


def _replacement(variables: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        return "$" if name is None else variables.get(name, match.group(0))

    return replace
