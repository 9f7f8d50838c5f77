"""What a checkup of a cluster says: how bad, about what, and what to do. Pure.

Fed by every preflight of ``bursting``; feeds ``doctor.report``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is. Only errors make a checkup fail."""

    OK = "Ok"
    NOTE = "Note"
    WARNING = "Warning"
    ERROR = "Error"

    @property
    def rank(self) -> int:
        """Its place in the order from good to bad."""
        return list(Level).index(self)


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing that was looked at. ``remedy`` says what to do where something is wrong."""

    level: Level
    subject: str
    what: str
    remedy: str = ""
