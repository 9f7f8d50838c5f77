"""``$(VAR)`` in environment values, commands and arguments, as the kubelet expands it.

Fed by :mod:`.environment` and :mod:`.resolve`; knows nothing of pods.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(value: str, variables: Mapping[str, str]) -> str:
    """Replace every ``$(NAME)``; ``$$`` becomes ``$``; unknown names stay as they are written."""
    return _REFERENCE.sub(_replacement(variables), value)


def unknown_names(value: str, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The names ``value`` refers to that are not among ``variables``, in order."""
    names = (match.group(1) for match in _REFERENCE.finditer(value))
    return tuple(name for name in names if name is not None and name not in variables)


def _replacement(variables: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        return "$" if name is None else variables.get(name, match.group(0))

    return replace
