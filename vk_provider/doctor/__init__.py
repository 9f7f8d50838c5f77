"""Commands that look at a live cluster for what would keep bursting from working as promised.

Each checkup is a module of this package with ``add_arguments(parser)`` and ``async def
run(arguments) -> int`` (0 nothing is wrong, 1 something is); it reads and never writes, unless its
summary says so. Fed by ``cli``; what is wrong is decided in ``bursting``.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from typing import Protocol, cast

CHECKUPS: Mapping[str, str] = {
    "scoring": "whether the scheduler would prefer home; places probes that nobody can start",
    "descheduler": "whether pods would come home, at which pace, and who would undo it",
    "kueue": "whether Kueue and the scheduler let training push inference out",
}
"""Name and summary; the module has the name."""


class Checkup(Protocol):
    """What a checkup's module offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Its own flags, beside ``-f``, ``--kubeconfig`` and ``--context``."""

    async def run(self, arguments: argparse.Namespace) -> int:
        """Look, say what was found, and answer the exit code."""


def load(name: str) -> Checkup:
    """The module of a checkup, imported only now: most commands need none."""
    return cast(Checkup, importlib.import_module(f"{__name__}.{name}"))
