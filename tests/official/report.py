"""What a run is worth: the share of the wanted specs that passed.

Fed by `suite`; printed by `__main__`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.official.suite import Result

PASSED = "passed"
ENOUGH = 0.95
"""A node that passes fewer of the reference specs than this is not one."""
_SAID = 400


def is_enough(found: Sequence[Result], wanted: Sequence[str]) -> bool:
    """Whether as many of the wanted specs passed as must."""
    return len(_passed(found, wanted)) >= ENOUGH * len(wanted)


def render(found: Sequence[Result], wanted: Sequence[str]) -> str:
    """Each wanted spec that did not pass with what it said, then the figure."""
    by_name = {result.spec: result for result in found}
    passed = _passed(found, wanted)
    lines = []
    for spec in wanted:
        if spec not in passed:
            result = by_name.get(spec, Result(spec, "did not run", 0.0, ""))
            lines.append(f"{result.state:12} {result.seconds:7.1f} s  {spec}")
            if result.said:
                lines.append(f"{'':14}{' '.join(result.said.split())[:_SAID]}")
    share = 100 * len(passed) / max(1, len(wanted))
    lines.append(f"{len(passed)} of {len(wanted)} passed ({share:.1f} %, wanted {ENOUGH:.0%})")
    return "\n".join(lines)


def _passed(found: Sequence[Result], wanted: Sequence[str]) -> set[str]:
    return {result.spec for result in found if result.state == PASSED} & set(wanted)
