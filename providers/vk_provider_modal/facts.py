"""What the client hands on of Modal's answers: values without anything of the SDK's in them.

Fed by ``client``; feeds ``memory``, ``observe``, ``answers`` and ``logs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Result:
    """How a sandbox ended. ``status`` is the service's word (``SUCCESS``, ``TIMEOUT``), empty
    while it has not. ``exit_code`` is the raw field: 0 where the service leaves it unset."""

    status: str = ""
    exit_code: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """One sandbox as a list shows it. Times are seconds since the epoch, 0 where unknown.

    ``tunnels``: container port -> address outside, empty while there are none.
    """

    id: str
    tags: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    created_at: float = 0.0
    started_at: float = 0.0
    timeout_seconds: int = 0
    result: Result = Result()
    tunnels: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that went wrong, without the SDK's exception: its class, the gRPC status, the words.

    ``sent`` is whether a create request had left the machine; ``sandbox_id`` is what it made, if
    that was still learnt. ``secrets`` must not appear in any message.
    """

    operation: str
    kind: str
    status: str = ""
    words: str = ""
    retry_after_seconds: float | None = None
    sent: bool = False
    sandbox_id: str | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Costs:
    """What is to be known of a bill: by which tag, from when to when. ``until`` None is now."""

    group_by: str
    since: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class LogPiece:
    """A piece of output as Modal keeps it: part of a line, or several."""

    timestamp: datetime
    source: str
    text: str
