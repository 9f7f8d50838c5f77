"""The specs that a real node passes: what the virtual node is measured against.

Each list holds full names, one a line, of specs that are marked as conformance or node conformance
and passed, all in one run, on the very node that is behind the virtual one here. `reference` is the
measure, `sig-node` and `sig-cli`; `storage` and `apps` are what these groups add.
Feeds `suite` with a focus and `report` with what was wanted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

VERSION = "1.36.3"
"""The release whose suite has these specs, and whose node passed them."""

LISTS = ("reference", "storage", "apps")
_SPECIAL = re.compile(r"[][\\.^$*+?(){}|]")


def specs(name: str = LISTS[0]) -> list[str]:
    """Every spec of a list by its full name."""
    return (Path(__file__).parent / f"{name}.txt").read_text().splitlines()


def focus(wanted: Sequence[str]) -> str:
    """A regular expression of Go that is true for exactly these specs.

    It is tried on the suite's own name and the spec's, with a space between them.
    """
    return f" ({'|'.join(_SPECIAL.sub(_escaped, spec) for spec in wanted)})$"


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"
