"""The log of a remote container, line by line, as its own kubelet keeps it.

Fed by ``provider``; the kubelet of the other cluster is asked for times, so that they are true.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from vk_provider.pods.types import LogLine, LogOptions
from vk_provider.streams import LONGEST_LINE_BYTES
from vk_provider_kubernetes.upstream import Query, Upstream

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = 6


def query_of(container: str, options: LogOptions) -> Query:
    """The parameters; the core applies since, tail and limit again."""
    asked = [("container", container), ("timestamps", "true")]
    asked += [(name, "true") for name in ("follow", "previous") if getattr(options, name)]
    if options.tail_lines is not None:
        asked.append(("tailLines", str(options.tail_lines)))
    if options.since is not None:
        # A second earlier: the API takes whole seconds, and the core cuts exactly.
        moment = options.since.astimezone(UTC).replace(microsecond=0)
        asked.append(("sinceTime", moment.strftime("%Y-%m-%dT%H:%M:%SZ")))
    return asked


async def read_logs(
    upstream: Upstream, path: str, container: str, options: LogOptions
) -> AsyncIterator[LogLine]:
    """Lines as they come; with ``follow`` until the container has ended."""
    lines = Lines()
    async with upstream.answer(path, query_of(container, options)) as chunks:
        async for chunk in chunks:
            for line in lines.feed(chunk):
                yield line
    for line in lines.rest():
        yield line


@dataclass(slots=True)
class Lines:
    """Cuts bytes into lines, and what has no end into pieces."""

    _begun: bytes = b""
    _last: datetime = EPOCH

    def feed(self, chunk: bytes) -> Iterator[LogLine]:
        """The lines that a chunk completes."""
        *whole, self._begun = (self._begun + chunk).split(b"\n")
        yield from map(self._line, whole)
        if len(self._begun) > LONGEST_LINE_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[LogLine]:
        """What was begun and has not ended."""
        begun, self._begun = self._begun, b""
        if begun:
            yield self._line(begun)

    def _line(self, raw: bytes) -> LogLine:
        line = parse_line(raw, self._last)
        self._last = line.timestamp
        return line


def parse_line(raw: bytes, last: datetime) -> LogLine:
    """A line with its time in front; one without belongs to the line before it."""
    stamp, _, words = raw.partition(b" ")
    moment = _moment(stamp.decode(errors="replace"))
    return LogLine(last, raw) if moment is None else LogLine(moment, words)


def _moment(stamp: str) -> datetime | None:
    """RFC 3339 with nanoseconds, which Python does not read."""
    seconds, _, rest = stamp.partition(".")
    zone = rest.lstrip("0123456789")
    fraction = rest[: len(rest) - len(zone)][:_MICROSECONDS]
    try:
        moment = datetime.fromisoformat(f"{seconds}.{fraction:0<6}{zone}" if rest else stamp)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
