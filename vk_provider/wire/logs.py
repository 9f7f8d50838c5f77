"""PURE. The query of ``/containerLogs``, and the way of a line from a backend to kubectl.

The order is a kubelet's: since, then tail, then timestamps, then the byte limit.
Fed by ``server.logs`` (the query, and lines as a backend gives them); feeds the response body.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from vk_provider.faults import WireError
from vk_provider.pods.types import LogLine, LogOptions

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9})\d*)?(Z|[+-]\d{2}:\d{2})", re.ASCII
)
_INT64_MAX = 2**63 - 1
_EARLIEST = datetime.min.replace(tzinfo=UTC)

TAIL_BYTES = 16 * 1024 * 1024
"""How much a tail may hold in memory; of a longer one the newest lines are served."""
LINE_BYTES = 64
"""What a line costs beside its text: empty ones are not for nothing."""


class LogQueryError(WireError):
    """The query can't be served: 400 when it can't be read, 422 when it makes no sense."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def parse_log_query(query: Mapping[str, str], now: datetime) -> LogOptions:
    """The options of one log request. Unknown parameters are ignored, as the kubelet does.

    Raises:
        LogQueryError: naming every parameter that is wrong.
    """
    tail_lines = _tail_lines(query)
    limit_bytes = _integer(query, "limitBytes")
    since_seconds = _integer(query, "sinceSeconds")
    since_time = _time(query, "sinceTime")
    problems = [
        *_below(tail_lines, 0, "tailLines"),
        *_below(limit_bytes, 1, "limitBytes"),
        *_below(since_seconds, 1, "sinceSeconds"),
        *_stream_problems(query),
    ]
    if since_seconds is not None and since_time is not None:
        problems.append("sinceSeconds, sinceTime: give at most one of them")
    if problems:
        raise LogQueryError(422, "Invalid request: " + "; ".join(problems))
    return LogOptions(
        follow=_boolean(query, "follow"),
        previous=_boolean(query, "previous"),
        timestamps=_boolean(query, "timestamps"),
        tail_lines=tail_lines,
        since=since_time if since_seconds is None else _seconds_before(now, since_seconds),
        limit_bytes=limit_bytes,
    )


def _tail_lines(query: Mapping[str, str]) -> int | None:
    legacy = query.get("tail", "")
    if legacy == "all":
        return None
    return _integer(query, "tail") if legacy else _integer(query, "tailLines")


def _integer(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if _INTEGER.fullmatch(text) is None or abs(int(text)) > _INT64_MAX:
        raise LogQueryError(400, f"Unable to decode query: {name}: {text!r} is not an integer")
    return int(text)


def _boolean(query: Mapping[str, str], name: str) -> bool:
    """As the API machinery reads it: only absence, "false" and "0" are false."""
    return query.get(name, "false").lower() not in ("false", "0")


def _time(query: Mapping[str, str], name: str) -> datetime | None:
    text = query.get(name, "")
    if text in ("", "null"):
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        message = f"{name}: {text!r} is not a time such as 2026-01-02T15:04:05Z"
        raise LogQueryError(400, f"Unable to decode query: {message}") from error


def _below(value: int | None, least: int, name: str) -> tuple[str, ...]:
    if value is None or value >= least:
        return ()
    return (f"{name}: {value} must be at least {least}",)


def _stream_problems(query: Mapping[str, str]) -> tuple[str, ...]:
    stream = query.get("stream", "")
    if stream in ("", "All"):
        return ()
    return (f"stream: {stream!r} is not available, the log of this node has only All",)


def _seconds_before(now: datetime, seconds: int) -> datetime:
    age = (now - _EARLIEST).total_seconds()
    return _EARLIEST if seconds >= age else now - timedelta(seconds=seconds)


def parse_time(text: str) -> datetime:
    """A time of RFC 3339 with any fraction, cut to microseconds.

    Raises:
        ValueError: if it is anything else.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an RFC 3339 time")
    seconds, fraction, zone = match.groups()
    micros = (fraction or "").ljust(6, "0")[:6]
    return datetime.fromisoformat(f"{seconds}.{micros}{zone.replace('Z', '+00:00')}")


def render_time(moment: datetime) -> str:
    """A time as the kubelet prints it before a line: RFC3339Nano, all nine digits, UTC."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="microseconds") + "000Z"


class Tail:
    """The last ``count`` lines of what was pushed, within a bound of bytes."""

    def __init__(self, count: int, max_bytes: int = TAIL_BYTES) -> None:
        self._count = count
        self._max_bytes = max_bytes
        self._lines: deque[LogLine] = deque()
        self._bytes = 0

    @property
    def lines(self) -> Sequence[LogLine]:
        """What is left of the pushed lines, oldest first."""
        return tuple(self._lines)

    def push(self, line: LogLine) -> None:
        """Add the newest line; the oldest ones fall out."""
        self._lines.append(line)
        self._bytes += _held(line)
        while self._lines and (len(self._lines) > self._count or self._bytes > self._max_bytes):
            self._bytes -= _held(self._lines.popleft())


def _held(line: LogLine) -> int:
    return len(line.text) + LINE_BYTES


class Joint:
    """Joins a first read of a log to a second that starts at the first one's last moment.

    Lines of that very moment come twice; each is told from a new one by its text.
    """

    def __init__(self) -> None:
        self._last: datetime | None = None
        self._texts: Counter[bytes] = Counter()

    @property
    def last(self) -> datetime | None:
        """The moment of the newest line of the first read; None if it had none."""
        return self._last

    def note(self, line: LogLine) -> None:
        """Remember a line of the first read."""
        if self._last is None or line.timestamp > self._last:
            self._last = line.timestamp
            self._texts.clear()
        if line.timestamp == self._last:
            self._texts[line.text] += 1

    def is_new(self, line: LogLine) -> bool:
        """Whether a line of the second read was not in the first."""
        if self._last is None or line.timestamp > self._last:
            return True
        if line.timestamp < self._last:
            return False
        if self._texts[line.text] == 0:
            return True
        self._texts[line.text] -= 1
        return False


class LogPipe:
    """Turns lines into the bytes of the answer: since, timestamps, and the exact byte limit."""

    def __init__(self, options: LogOptions) -> None:
        self._since = options.since
        self._timestamps = options.timestamps
        self._left = options.limit_bytes
        self._is_plain = (self._since, self._timestamps, self._left) == (None, False, None)

    @property
    def is_full(self) -> bool:
        """Whether the byte limit is used up: nothing more will come out."""
        return self._left == 0

    def is_wanted(self, line: LogLine) -> bool:
        """Whether a line is not older than ``since``."""
        return self._since is None or line.timestamp >= self._since

    def feed(self, line: LogLine) -> bytes:
        """The bytes a line adds to the answer; empty if it is too old or the limit is reached."""
        if not self.is_wanted(line):
            return b""
        prefix = f"{render_time(line.timestamp)} ".encode() if self._timestamps else b""
        rendered = prefix + line.text + b"\n"
        if self._left is None:
            return rendered
        cut = rendered[: self._left]
        self._left -= len(cut)
        return cut

    def feed_all(self, lines: Iterable[LogLine]) -> bytes:
        """The bytes that lines add to the answer, as :meth:`feed` one by one."""
        if self._is_plain:
            # What `logs -f` asks for: a busy container has hundreds of thousands a second.
            return b"".join([line.text + b"\n" for line in lines])
        return b"".join(map(self.feed, lines))


def render_log(lines: Iterable[LogLine], options: LogOptions) -> bytes:
    """The whole answer for lines that are all at hand."""
    pipe = LogPipe(options)
    wanted: Iterable[LogLine] = (line for line in lines if pipe.is_wanted(line))
    if options.tail_lines is not None:
        tail = Tail(options.tail_lines)
        for line in wanted:
            tail.push(line)
        wanted = tail.lines
    return b"".join(pipe.feed(line) for line in wanted)
