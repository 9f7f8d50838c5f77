"""What a checkup has found, on a terminal. Fed by the checkups; feeds standard output."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from vk_provider.bursting.checkup import Advice, Level
from vk_provider.output import Style, say

_SIGNS = {Level.OK: "ok", Level.NOTE: "note", Level.WARNING: "warning", Level.ERROR: "ERROR"}
_WIDTH = 9


def tell(advice: Sequence[Advice]) -> int:
    """Print everything, the worst last (it is what a terminal shows); the exit code."""
    style = Style.of(sys.stdout)
    for one in sorted(advice, key=lambda found: found.level.rank):
        say(_shown(one, style))
    errors = sum(one.level is Level.ERROR for one in advice)
    warnings = sum(one.level is Level.WARNING for one in advice)
    say(style.strong(f"\n{errors} errors, {warnings} warnings"))
    return 1 if errors else 0


def _shown(one: Advice, style: Style) -> str:
    paint = style.bad if one.level in (Level.ERROR, Level.WARNING) else style.good
    sign = _SIGNS[one.level].ljust(_WIDTH)
    indent = " " * _WIDTH
    lines = [style.wrapped(f"{one.subject}: {one.what}", sign, indent)]
    lines[0] = lines[0].replace(sign, paint(sign), 1)
    if one.remedy:
        lines.append(style.wrapped(f"-> {one.remedy}", indent, f"{indent}   "))
    return "\n".join(lines)
