"""The specs that a real node passes: what the virtual node is measured against.

`reference.txt` holds their full names, one a line: `sig-node` and `sig-cli` specs that are marked
as conformance or node conformance and passed, all in one run, on the very node that is behind the
virtual one here. Feeds `suite` with a focus and `report` with what was wanted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

VERSION = "1.36.3"
"""The release whose suite has these specs, and whose node passed them."""

_FILE = Path(__file__).parent / "reference.txt"
_SPECIAL = re.compile(r"[][\\.^$*+?(){}|]")


def specs() -> list[str]:
    """Every spec by its full name."""
    return _FILE.read_text().splitlines()


def focus(wanted: Sequence[str]) -> str:
    """A regular expression of Go that is true for exactly these specs.

    It is tried on the suite's own name and the spec's, with a space between them.
    """
    return f" ({'|'.join(_SPECIAL.sub(_escaped, spec) for spec in wanted)})$"


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"
