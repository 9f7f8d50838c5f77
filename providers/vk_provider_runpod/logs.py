"""A container's log out of RunPod's event stream: no line lost, none twice, no read without end.

The stream goes on for ever, says nothing while the pod is quiet, and may break at any moment. It
is resumed a little before the last line, and what was sent already is recognised by its id.
Fed by ``client``; feeds ``provider.read_logs``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import aiohttp

from vk_provider.faults import InstanceNotFoundError, ProviderError, UnavailableError
from vk_provider.pods.types import LogLine, LogOptions
from vk_provider_runpod.client import RunPodClient
from vk_provider_runpod.sse import Event, EventParser, read_line

MOST_TAIL = 5000
QUIET_SECONDS = 1.0
READ_SECONDS = 20.0
FOLLOW_QUIET_SECONDS = 60.0
OVERLAP = timedelta(seconds=1)
_PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0)
_OVER = ("EXITED", "ERROR", "TERMINATED")


@dataclass(slots=True)
class Cursor:
    """Where the reader is: the moments of the first and the newest line seen, and the lines of the
    last while. ``opened_at`` is the server's time when the first stream opened."""

    oldest: datetime | None = None
    newest: datetime | None = None
    opened_at: datetime | None = None
    first_id: str = ""
    recent: deque[tuple[str, datetime, bytes]] = field(
        default_factory=lambda: deque(maxlen=2 * MOST_TAIL)
    )
    _earlier: list[tuple[str, datetime, bytes]] = field(default_factory=list)

    def is_new(self, event: Event, line: LogLine) -> bool:
        """Whether the line was not seen before; remembers it."""
        key = (event.id, line.timestamp, line.text)
        # Ids without a sequence number can't tell equal lines of one moment apart within one
        # stream, so they only count against what earlier streams sent.
        if key in self._earlier:
            self._earlier.remove(key)
            return False
        if self.oldest == line.timestamp and _number(event.id) < _number(self.first_id):
            return False  # of the first moment, but before what was asked for
        self.recent.append(key)
        self.first_id = self.first_id or event.id
        self.oldest = min(self.oldest or line.timestamp, line.timestamp)
        self.newest = max(self.newest or line.timestamp, line.timestamp)
        return True

    def resume(self) -> str | None:
        """The ``Last-Event-ID`` of a new stream: a bare time, a little before the newest line, but
        not before the first: what is older was not asked for."""
        if self.newest is None or self.oldest is None:
            return None if self.opened_at is None else _rfc3339(self.opened_at)
        since = max(self.oldest, self.newest - OVERLAP)
        self._earlier = [key for key in self.recent if key[1] >= since]
        return _rfc3339(since)


async def read_logs(
    client: RunPodClient, pod_id: str, options: LogOptions
) -> AsyncGenerator[LogLine, None]:
    """Lines of the container in order; with ``follow`` until it has ended and all is read."""
    cursor = Cursor()
    failures = 0
    while True:
        was = cursor.newest
        try:
            async with aclosing(_one_stream(client, pod_id, options, cursor)) as lines:
                async for line in lines:
                    yield line
        except InstanceNotFoundError:
            if cursor.opened_at is not None:
                return
            raise
        except UnavailableError:
            failures = 0 if cursor.newest != was else failures + 1
            if not options.follow or failures > len(_PAUSES):
                raise
        if not options.follow or (cursor.newest == was and await _is_over(client, pod_id)):
            return
        await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])


async def _is_over(client: RunPodClient, pod_id: str) -> bool:
    try:
        pod = await client.get_pod(pod_id)
    except UnavailableError:
        return False
    return pod is None or pod.get("status") in _OVER


async def _one_stream(
    client: RunPodClient, pod_id: str, options: LogOptions, cursor: Cursor
) -> AsyncGenerator[LogLine, None]:
    """The lines of one stream, until it breaks, or until a bounded read has caught up."""
    resume = cursor.resume()
    async with client.open_logs(pod_id, _query(options, resume), resume) as (stream, opened):
        cursor.opened_at = cursor.opened_at or opened
        async with aclosing(_events(stream, options.follow)) as events:
            async for event in events:
                line = _container_line(event, cursor)
                if line is None:
                    continue
                # A pod that never stops talking must not keep a bounded read going.
                if not options.follow and line.timestamp > opened + OVERLAP:
                    return
                yield line


async def _events(stream: aiohttp.StreamReader, follow: bool) -> AsyncGenerator[Event, None]:
    """Events until the stream ends or falls silent; without ``follow`` until the first silence."""
    parser = EventParser()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + READ_SECONDS
    while True:
        quiet = FOLLOW_QUIET_SECONDS if follow else min(QUIET_SECONDS, deadline - loop.time())
        try:
            chunk = await asyncio.wait_for(stream.readany(), quiet)
        except TimeoutError:
            return
        if not chunk:
            return
        for event in parser.feed(chunk):
            if not event.is_heartbeat:
                yield event
            elif not follow:
                return


def _container_line(event: Event, cursor: Cursor) -> LogLine | None:
    found = read_line(event)
    if found is None or found[1] != "container" or not cursor.is_new(event, found[0]):
        return None
    return found[0]


def _query(options: LogOptions, resume: str | None) -> Mapping[str, str]:
    query = {"source": "container"}
    if resume is not None:
        return query
    if options.since is not None:
        query["since"] = _rfc3339(options.since)
    else:
        tail = MOST_TAIL if options.tail_lines is None else options.tail_lines
        query["tail"] = str(max(0, min(MOST_TAIL, tail)))
    return query


def _number(event_id: str) -> int:
    """Which line of its moment it is, 0 where the id does not tell."""
    sequence = event_id.rpartition("/")[2]
    return int(sequence) if sequence.isascii() and sequence.isdigit() else 0


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


async def last_system_lines(client: RunPodClient, pod_id: str, seconds: float) -> list[str]:
    """The newest lines of the host about this pod, as far as they come within ``seconds``."""
    query = {"source": "system", "tail": "50"}
    try:
        async with (
            asyncio.timeout(seconds),
            client.open_logs(pod_id, query, None) as (stream, _),
            aclosing(_events(stream, follow=False)) as events,
        ):
            found = [read_line(event) async for event in events]
    except (TimeoutError, ProviderError):
        # Only a diagnosis: the list that asked for it stands without.
        return []
    return [line.text.decode() for line, _ in filter(None, found)]
