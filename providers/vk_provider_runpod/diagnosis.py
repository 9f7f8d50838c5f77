"""Why a container never starts, out of the host's log lines: its image, its command, or the host.

RunPod tells in no field that an image can't be pulled or a container not be started; an instance
just stays RUNNING (and is billed, while its host tries for ever) or goes EXITED after some seconds.
The newest system lines know.
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
TRIES_AGE = timedelta(minutes=5)
"""A host that has failed to start a container for so long, every 17 s or so, goes on like that."""
MOST_AT_ONCE = 4

_ABSENT = re.compile(
    r"manifest unknown|manifest for \S+ not found|no matching manifest|repository does not exist"
    r"|invalid reference format|name unknown",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"unauthorized|access denied|denied:|authentication required", re.IGNORECASE)
_FAILED = re.compile(r"fail\w* to pull|error pulling|cannot be mapped to a host id", re.IGNORECASE)
_HOST = re.compile(
    r"nvidia-container-cli.*(cuda|driver)|unsatisfied condition: cuda|layer does not exist"
    r"|exec: \"nvidia-",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"exec: \"[^\"]*\": .*(not found|no such file|permission denied|is a directory|format error)",
    re.IGNORECASE,
)
_NOT_STARTED = re.compile(r"error (creating|starting) container", re.IGNORECASE)
_TRY = re.compile(r"(create|start) container", re.IGNORECASE)


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
        if _NOT_STARTED.search(line) and _COMMAND.search(line):
            return Diagnosis(line, EndCause.IMAGE)
    return _failing(lines) if ended or age >= TRIES_AGE else None


def _failing(lines: Sequence[str]) -> Diagnosis | None:
    """The host's last attempt to start the container, if that is what it is at and it failed."""
    done = [line for line in lines if not _TRY.match(line)]
    if not done or not _NOT_STARTED.search(done[-1]):
        return None
    return Diagnosis(done[-1], EndCause.LOST)
