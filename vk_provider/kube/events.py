"""Events: what a person sees with ``kubectl describe``, written without ever holding anybody up.

``emit`` returns at once. What it leaves behind waits in a bounded queue (an Event that is counted
again while it waits is written once; the oldest is dropped when there are too many) and is written
at a limited rate. Events are a courtesy: one that can't be written is counted and forgotten.

Fed by ``loops``; feeds the API server.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from vk_provider.faults import ConflictError, KubeError, KubeNotFoundError, KubeUnavailableError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.event_aggregation import (
    Bucket,
    Entry,
    EventCorrelator,
    Limits,
    Occurrence,
    Regarding,
)
from vk_provider.pods.types import Json

logger = logging.getLogger(__name__)

NODE_EVENTS_NAMESPACE = "default"
LONGEST_MESSAGE = 1024
LONGEST_REASON = 128
LONGEST_NAME_PREFIX = 220
MOST_CREATED = 10_000
MOST_TRIES = 3
LONGEST_WISH_SECONDS = 60.0
"""Other Events wait behind one: no longer than this, whatever the API server asks for."""


@dataclass(frozen=True, slots=True)
class NodeRef:
    """The node as the object of an Event."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast Events go out, and how many may wait. The rate is a kubelet's."""

    per_second: float = 50.0
    burst: int = 100
    most_waiting: int = 1000
    retry_seconds: float = 5.0


class EventRecorder:
    """Takes Events from anywhere and writes them while :meth:`run` runs. ``observe`` is told why
    one was not written."""

    def __init__(
        self,
        client: KubeClient,
        host: str,
        component: str = "vk-provider",
        *,
        limits: Limits | None = None,
        pace: Pace | None = None,
        observe: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.dropped = 0
        """Events that were not written: too many waiting, or refused by the API server."""
        self.suppressed = 0
        """Events that were held back because their object had said enough."""
        self._observe = observe
        self._client = client
        self._source = {"component": component, "host": host}
        self._correlator = EventCorrelator(limits)
        self._started = time.time_ns()
        self._waiting: OrderedDict[int, Entry] = OrderedDict()
        self._created: set[int] = set()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._pace = pace or Pace()
        self._tokens = Bucket(
            self._pace.burst, 1 / self._pace.per_second, self._pace.burst, time.monotonic()
        )

    def emit(
        self,
        regarding: Json | NodeRef,
        type_: str,
        reason: str,
        message: str,
        field_path: str | None = None,
    ) -> None:
        """Record an Event about a pod or the node. ``type_`` is ``Normal`` or ``Warning``."""
        cut = message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 3] + "..."
        about = _regarding(regarding, field_path)
        occurrence = Occurrence(about, type_, reason[:LONGEST_REASON], cut)
        entry = self._correlator.correlate(occurrence, time.time())
        if entry is None:
            self.suppressed += 1
            self._observe("Suppressed")
            return
        self._waiting[entry.number] = entry
        if len(self._waiting) > self._pace.most_waiting:
            self._waiting.popitem(last=False)
            self.dropped += 1
            self._observe("QueueFull")
        self._idle.clear()
        self._arrived.set()

    async def run(self) -> None:
        """Write what was emitted until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                _, entry = self._waiting.popitem(last=False)
                await self._write_in_turn(entry)
            self._idle.set()

    async def drain(self, seconds: float = 5.0) -> None:
        """Wait until all that was emitted is written, for so long at most. Needs :meth:`run`."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            self.dropped += len(self._waiting)
            logger.warning("%d Events were not written in time", len(self._waiting))

    async def _write_in_turn(self, entry: Entry) -> None:
        if not self._tokens.take(time.monotonic()):
            await asyncio.sleep(self._tokens.wait_seconds())
            self._tokens.take(time.monotonic())
        for attempt in range(1, MOST_TRIES + 1):
            try:
                await self._write(entry)
            except KubeUnavailableError as fault:
                if attempt == MOST_TRIES:
                    self._drop(entry, fault)
                    return
                wish = min(fault.retry_after_seconds or 0.0, LONGEST_WISH_SECONDS)
                await asyncio.sleep(wish or self._pace.retry_seconds)
            except KubeError as fault:
                self._drop(entry, fault)
                return
            else:
                return

    async def _write(self, entry: Entry) -> None:
        body = self._body(entry)
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        counted = {key: body[key] for key in ("count", "lastTimestamp", "message")}
        if entry.number in self._created:
            try:
                await self._client.patch(paths.event(namespace, name), counted)
            except KubeNotFoundError:
                # Events live for an hour; the API server has forgotten this one.
                self._created.discard(entry.number)
            else:
                return
        try:
            await self._client.create(paths.events(namespace), body)
        except ConflictError:
            # The name is ours alone: an earlier try got through and only its answer was lost.
            await self._client.patch(paths.event(namespace, name), counted)
        if len(self._created) >= MOST_CREATED:
            self._created.clear()
        self._created.add(entry.number)

    def _drop(self, entry: Entry, fault: KubeError) -> None:
        self.dropped += 1
        self._observe("Refused")
        logger.debug("Event %s was not written: %s", entry.occurrence.reason, fault)

    def _body(self, entry: Entry) -> dict[str, Any]:
        occurrence, about = entry.occurrence, entry.occurrence.regarding
        prefix = about.name[:LONGEST_NAME_PREFIX].rstrip(".-")
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "namespace": about.namespace or NODE_EVENTS_NAMESPACE,
                "name": f"{prefix}.{self._started + entry.number:x}",
            },
            "involvedObject": _reference(about),
            "type": occurrence.type,
            "reason": occurrence.reason,
            "message": occurrence.message,
            "source": self._source,
            "reportingComponent": self._source["component"],
            "reportingInstance": self._source["host"],
            "firstTimestamp": _timestamp(entry.first),
            "lastTimestamp": _timestamp(entry.last),
            "count": entry.count,
        }


def _regarding(regarding: Json | NodeRef, field_path: str | None) -> Regarding:
    if isinstance(regarding, NodeRef):
        return Regarding("Node", "", regarding.name, regarding.uid, field_path=field_path or "")
    metadata = regarding["metadata"]
    return Regarding(
        regarding.get("kind", "Pod"),
        metadata.get("namespace", ""),
        metadata["name"],
        metadata["uid"],
        regarding.get("apiVersion", "v1"),
        field_path or "",
    )


def _reference(about: Regarding) -> Mapping[str, str]:
    reference = {
        "apiVersion": about.api_version,
        "kind": about.kind,
        "namespace": about.namespace,
        "name": about.name,
        "uid": about.uid,
        "fieldPath": about.field_path,
    }
    return {key: value for key, value in reference.items() if value}


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
