"""Server-sent events out of bytes, however these are cut.

Pure. Fed by ``logs`` with chunks of the stream; gives events and comments (heartbeats) back.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from datetime import UTC, datetime

from vk_provider.pods.types import LogLine
from vk_provider.streams import LONGEST_LINE_BYTES
from vk_provider_runpod.answers import decode

LONGEST_FIELD = 16 * LONGEST_LINE_BYTES
"""A container need never end a line, and what it prints grows when it is written as JSON."""
_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""Times that can be reckoned with: nearer to the ends of the calendar a second more is none."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its id and data. Both empty: a comment, which says that nothing is pending."""

    id: str = ""
    data: str = ""

    @property
    def is_heartbeat(self) -> bool:
        """Whether it is a sign of life and no line."""
        return not self.data


class EventParser:
    """Feed it bytes, get events; characters may be split between two chunks."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""
        self._id = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that ``chunk`` completes."""
        self._rest += self._decoder.decode(chunk)
        # A lone \\r at the end may be the first half of \\r\\n.
        held = "\r" if self._rest.endswith("\r") else ""
        text = self._rest.removesuffix(held) if held else self._rest
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = lines.pop() + held
        if len(self._rest) > LONGEST_FIELD:
            self._rest = ""  # what comes of it yet has no name that means anything
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: str) -> Event | None:
        if not line:
            return self._dispatch()
        if line.startswith(":"):
            return Event()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id" and "\0" not in value:
            self._id = value
        elif name == "data":
            self._data.append(value)
        return None

    def _dispatch(self) -> Event | None:
        if not self._data:
            return None
        event = Event(self._id, "\n".join(self._data))
        self._data = []
        return event


def read_line(event: Event) -> tuple[LogLine, str] | None:
    """The line of an event and the source it came from; None where it is none."""
    found = decode(event.data)
    if not isinstance(found, dict) or not isinstance(found.get("line"), str):
        return None
    stamp = str(found.get("ts") or event.id.partition("/")[0])
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if moment.tzinfo is None or not _EARLIEST <= moment <= _LATEST:
        return None
    return LogLine(moment, found["line"].rstrip("\r\n").encode()), str(found.get("source", ""))
