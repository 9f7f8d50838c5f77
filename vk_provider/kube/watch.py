"""A watch that never ends: three nested generators, from one request to forever.

``watch`` (forever) backs off between ``_attempt``s (a fresh list where needed, then one request),
which read ``_one_request``. What goes wrong inside ends as a resumed watch or as a relist, never as
an exception. Deletions that fall into a gap have no watch event: ``Synced`` names what is present.

Fed by :class:`vk_provider.kube.client.KubeClient`; feeds ``kube.cache`` and ``kube.references``.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson

from vk_provider.faults import (
    ForbiddenError,
    GoneError,
    InvalidObjectError,
    KubeError,
    KubeUnavailableError,
)
from vk_provider.kube.answers import status_fault
from vk_provider.kube.client import KubeClient
from vk_provider.kube.observer import resource_of
from vk_provider.pods.types import Json

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
EVENTS_PER_TURN = 64
UNANSWERED_WATCH_LISTS = 2


@dataclass(frozen=True, slots=True)
class Upsert:
    """The object is there, in this version."""

    obj: Json


@dataclass(frozen=True, slots=True)
class Removed:
    """The object is gone (or no longer matches the selector); this was its last version."""

    obj: Json


@dataclass(frozen=True, slots=True)
class Synced:
    """A complete view was given: whatever is not among these UIDs is not there."""

    uids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The watch failed for this reason and goes on after a pause; what is known may be old."""

    fault: KubeError


@dataclass(frozen=True, slots=True)
class Resumed:
    """The watch is open again after an interruption."""


T = TypeVar("T")
WatchEvent = Upsert | Removed | Synced | Interrupted | Resumed
OPENED = "OPENED"


@dataclass(frozen=True, slots=True)
class WatchTimings:
    """How long a watch waits for what. The defaults suit an API server."""

    first_delay_seconds: float = 0.8
    longest_delay_seconds: float = 30.0
    healthy_seconds: float = 30.0
    """A request that lasted this long forgives the failures before it."""
    shortest_request_seconds: float = 300.0
    longest_request_seconds: float = 600.0
    margin_seconds: float = 15.0
    """How much later than the API server's own time-out silence counts as a stall."""
    stall_seconds: float = 180.0
    """Silence that counts as a stall once bookmarks flow, which come every minute."""
    initial_silence_seconds: float = 30.0


def delay_seconds(failures: int, timings: WatchTimings, jitter: float) -> float:
    """How long to wait after so many failures in a row; ``jitter`` is in [0, 1)."""
    if failures <= 0:
        return 0.0
    doubled = timings.first_delay_seconds * 2.0 ** min(failures - 1, 30)
    return min(doubled, timings.longest_delay_seconds) * (0.5 + jitter / 2)


async def watch(
    client: KubeClient,
    path: str,
    *,
    field_selector: str | None = None,
    label_selector: str | None = None,
    timings: WatchTimings | None = None,
) -> AsyncGenerator[WatchEvent, None]:
    """All changes of a collection, for ever. Close it (``aclosing``) to stop."""
    selectors = {"fieldSelector": field_selector, "labelSelector": label_selector}
    source = _Source(client, path, selectors, timings or WatchTimings())
    failures = 0
    while True:
        started = time.monotonic()
        fault: KubeError | None = None
        try:
            async with aclosing(source.attempt()) as events:
                async for event in events:
                    yield event
        except KubeError as error:
            fault = error
            source.learn(error)
        client.observer.watch_restarted(resource_of(path), _why(fault))
        lasted = time.monotonic() - started
        failures = 0 if lasted >= source.timings.healthy_seconds else failures + 1
        if fault is not None and not isinstance(fault, GoneError):
            yield Interrupted(fault)
        await asyncio.sleep(_pause(failures, source.timings, fault))


def _why(fault: KubeError | None) -> str:
    return "Ended" if fault is None else fault.reason or type(fault).__name__


def _pause(failures: int, timings: WatchTimings, fault: KubeError | None) -> float:
    wish = getattr(fault, "retry_after_seconds", None) or 0.0
    return max(delay_seconds(failures, timings, random.random()), min(float(wish), 60.0))


class _Source:
    """One collection, and how far its changes have been read."""

    def __init__(
        self,
        client: KubeClient,
        path: str,
        selectors: dict[str, str | None],
        timings: WatchTimings,
    ) -> None:
        self.timings = timings
        self._client = client
        self._path = path
        self._selectors = selectors
        self._version: str | None = None
        self._watch_list = True
        self._unanswered = 0
        self._bookmarks_flow = False
        self._interrupted = False

    def learn(self, fault: KubeError) -> None:
        """What a failure says about where to go on."""
        self._interrupted = True
        if isinstance(fault, GoneError):
            self._version = None

    async def attempt(self) -> AsyncGenerator[WatchEvent, None]:
        """A complete view if there is none yet, then one request's changes."""
        if self._version is None and self._may_watch_list():
            try:
                async with aclosing(self._watch_list_request()) as events:
                    async for event in events:
                        yield event
                return
            except (InvalidObjectError, ForbiddenError) as refusal:
                self._remember(refusal)
        if self._version is None:
            for batch in _turns(await self._list()):
                for event in batch:
                    yield event
                await asyncio.sleep(0)
        async with aclosing(self._changes({"resourceVersion": self._version})) as changes:
            async for event in changes:
                yield event

    def _may_watch_list(self) -> bool:
        # An API server that ignores the parameter never ends its initial events.
        answers = self._unanswered < UNANSWERED_WATCH_LISTS
        return self._client.serves_watch_list and self._watch_list and answers

    def _remember(self, refusal: KubeError) -> None:
        if isinstance(refusal, InvalidObjectError):
            self._client.serves_watch_list = False
        else:
            # Perhaps the identity may list but not watch here; only this collection is affected.
            self._watch_list = False

    async def _list(self) -> list[WatchEvent]:
        items, version = await self._client.list(self._path, retry=False, **self._selectors)
        self._version = version
        uids = frozenset(item["metadata"]["uid"] for item in items)
        return [*map(Upsert, items), Synced(uids)]

    async def _watch_list_request(self) -> AsyncGenerator[WatchEvent, None]:
        params = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}
        present: set[str] = set()
        complete = False
        async with aclosing(self._changes(params)) as changes:
            async for event in changes:
                if isinstance(event, Synced):
                    complete, self._unanswered = True, 0
                    yield Synced(frozenset(present))
                    continue
                if not complete:
                    _count(present, event)
                yield event

    async def _changes(self, extra: dict[str, Any]) -> AsyncGenerator[WatchEvent, None]:
        """One request's events; bookmarks and objects move the version on."""
        initial = "sendInitialEvents" in extra
        async with aclosing(self._one_request(extra)) as answers:
            async for kind, obj in answers:
                if kind == OPENED:
                    self._unanswered += initial
                    if self._interrupted:
                        self._interrupted = False
                        yield Resumed()
                    continue
                if kind == "ERROR":
                    raise status_fault(obj, f"watch of {self._path}")
                version = obj["metadata"]["resourceVersion"]
                if kind == "BOOKMARK":
                    ended = _ends_initial_events(obj)
                    self._bookmarks_flow = True
                    self._version = version if ended or not initial else self._version
                    if ended and initial:
                        initial = False
                        yield Synced(frozenset())
                    continue
                # Until the initial events have ended, nothing may be resumed from here.
                self._version = self._version if initial else version
                yield Removed(obj) if kind == "DELETED" else Upsert(obj)

    async def _one_request(self, extra: dict[str, Any]) -> AsyncGenerator[tuple[str, Json], None]:
        seconds = random.uniform(
            self.timings.shortest_request_seconds, self.timings.longest_request_seconds
        )
        params = {
            "watch": True,
            "allowWatchBookmarks": True,
            "timeoutSeconds": max(1, int(seconds)),
            **self._selectors,
            **extra,
        }
        self._bookmarks_flow = False
        async with self._client.stream_lines(self._path, params) as batches:
            yield OPENED, {}
            while lines := await self._next(batches, seconds):
                for turn in _turns(lines):
                    for line in turn:
                        yield self._parse(line)
                    # A burst must not hold the loop, or the leases would wait for it.
                    await asyncio.sleep(0)

    async def _next(
        self, batches: AsyncIterator[Sequence[bytes]], seconds: float
    ) -> Sequence[bytes]:
        silence = seconds + self.timings.margin_seconds
        if self._bookmarks_flow:
            silence = min(silence, self.timings.stall_seconds)
        elif self._version is None:
            silence = min(silence, self.timings.initial_silence_seconds)
        try:
            async with asyncio.timeout(silence):
                return await anext(batches)
        except StopAsyncIteration:
            return ()
        except TimeoutError as error:
            message = f"watch of {self._path}: silent for {silence:.0f} s"
            raise KubeUnavailableError(message, reason="Stalled") from error

    def _parse(self, line: bytes) -> tuple[str, Json]:
        try:
            event = orjson.loads(line)
            kind, obj = event["type"], event["object"]
            if kind != "ERROR" and not isinstance(obj["metadata"]["resourceVersion"], str):
                raise TypeError("resourceVersion")
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise KubeUnavailableError(
                f"watch of {self._path}: a line is no watch event", reason="GarbledAnswer"
            ) from error
        return kind, obj


def _turns(sequence: Sequence[T]) -> list[Sequence[T]]:
    return [
        sequence[start : start + EVENTS_PER_TURN]
        for start in range(0, len(sequence), EVENTS_PER_TURN)
    ]


def _count(present: set[str], event: WatchEvent) -> None:
    if isinstance(event, Upsert):
        present.add(event.obj["metadata"]["uid"])
    elif isinstance(event, Removed):
        present.discard(event.obj["metadata"]["uid"])


def _ends_initial_events(bookmark: Json) -> bool:
    annotations = bookmark["metadata"].get("annotations") or {}
    return bool(annotations.get(INITIAL_EVENTS_END) == "true")
