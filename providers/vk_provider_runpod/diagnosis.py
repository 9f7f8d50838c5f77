"""Why a container never starts, out of the host's log lines: its image, or the host.

RunPod tells in no field that an image can't be pulled; an instance just stays RUNNING (and is
billed) or goes EXITED after some seconds. The newest system lines know.
Pure. Fed by ``provider`` with the lines of few instances at a time; feeds ``observe``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from vk_provider.pods.types import EndCause

START_AGE = timedelta(seconds=30)
"""Younger instances are taken to be pulling."""
ASK_AGAIN = timedelta(seconds=30)
CREDENTIAL_AGE = timedelta(minutes=5)
"""A new registry credential may take so long to be accepted."""
MOST_AT_ONCE = 4

_ABSENT = re.compile(
    r"manifest unknown|manifest for \S+ not found|no matching manifest|repository does not exist"
    r"|invalid reference format|name unknown",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"unauthorized|access denied|denied:|authentication required", re.IGNORECASE)
_FAILED = re.compile(r"fail\w* to pull|error pulling|cannot be mapped to a host id", re.IGNORECASE)
_HOST = re.compile(
    r"nvidia-container-cli.*(cuda|driver)|unsatisfied condition: cuda", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The line that says it, and whose fault it is."""

    line: str
    cause: EndCause


def is_due(age: timedelta, *, ended: bool, asked_at: datetime | None, now: datetime) -> bool:
    """Whether the host should be asked why an instance of that age has not started."""
    if ended:
        return asked_at is None
    return age >= START_AGE and (asked_at is None or now - asked_at >= ASK_AGAIN)


def diagnose(lines: Sequence[str], age: timedelta, *, ended: bool) -> Diagnosis | None:
    """The newest line that settles it, None while there is hope."""
    for line in reversed(lines):
        if _ABSENT.search(line):
            return Diagnosis(line, EndCause.IMAGE)
        if _REFUSED.search(line) and (ended or age >= CREDENTIAL_AGE):
            return Diagnosis(line, EndCause.IMAGE)
        if _FAILED.search(line) and ended:
            return Diagnosis(line, EndCause.IMAGE)
        if _HOST.search(line):
            return Diagnosis(line, EndCause.LOST)
    return None
