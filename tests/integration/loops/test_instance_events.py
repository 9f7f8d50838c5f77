"""What a backend tells of an instance stands on its pod, also when it was told too early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from tests.support.loop_clock import LoopClock
from vk_provider.faults import UnavailableError
from vk_provider.loops.instance_events import LONGEST_WAIT_SECONDS, InstanceEvents
from vk_provider.loops.shell import Shell
from vk_provider.metrics import Metrics
from vk_provider.pods.slots import Record, changed
from vk_provider.pods.types import InstanceRef, Json
from vk_provider.provider import InstanceEvent
from vk_provider.testing.builders import make_pod, uid_of

UID = uid_of("app-1")
REF = InstanceRef("i-1")
PULLED = InstanceEvent(REF, "Normal", "Pulled", "image is there", "spec.containers{app}")
FAILED = InstanceEvent(REF, "Warning", "Failed", "no such user")


class Teller:
    """A backend that tells these things, breaks once, and then is silent."""

    def __init__(self, *events: InstanceEvent) -> None:
        self.events = [*events]

    async def watch_events(self) -> AsyncIterator[InstanceEvent]:
        while self.events:
            yield self.events.pop(0)
            if len(self.events) == 1:
                raise UnavailableError("gone for a moment")
        await asyncio.Event().wait()


class Bench:
    """One pod, one backend, and what was told about the pod."""

    def __init__(self, provider: object) -> None:
        backend: Any = SimpleNamespace(name="a", provider=provider)
        self.records: dict[Any, Record] = {}
        workers: Any = SimpleNamespace(records=self.records)
        self.told: list[tuple[str, ...]] = []
        shell = Shell(
            LoopClock(datetime(2026, 1, 1, tzinfo=UTC)),
            Metrics(CollectorRegistry()),
            jitter=lambda: 0.0,
        )
        self.ear = InstanceEvents(backend, workers, self._emit, shell)

    def _emit(self, pod: Json, kind: str, reason: str, message: str, path: str | None) -> None:
        self.told.append((pod["metadata"]["name"], kind, reason, message, path or ""))

    def know(self) -> None:
        """The create call has answered."""
        record = Record(UID, datetime(2026, 1, 1, tzinfo=UTC))
        self.records[UID] = changed(record, pod=make_pod(), ref=REF, backend="a")

    async def listen(self, seconds: float) -> None:
        """For so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ear.run()


async def test_events_of_an_instance_become_its_pods() -> None:
    """With their container, and also after the stream broke."""
    bench = Bench(Teller(PULLED, FAILED, PULLED))
    bench.know()

    await bench.listen(5)

    pulled = ("app-1", "Normal", "Pulled", "image is there", "spec.containers{app}")
    assert bench.told == [pulled, ("app-1", "Warning", "Failed", "no such user", ""), pulled]


async def test_an_event_that_is_early_waits_for_its_pod() -> None:
    """The create call may answer later than the kubelet speaks."""
    bench = Bench(Teller(PULLED))
    asyncio.get_running_loop().call_later(3, bench.know)

    await bench.listen(5)

    assert len(bench.told) == 1


async def test_what_nobody_claims_is_forgotten() -> None:
    """It is about an instance of somebody else."""
    bench = Bench(Teller(PULLED))
    asyncio.get_running_loop().call_later(LONGEST_WAIT_SECONDS + 2, bench.know)

    await bench.listen(LONGEST_WAIT_SECONDS + 5)

    assert bench.told == []


async def test_a_backend_that_tells_nothing_is_not_asked() -> None:
    """Most have no events."""
    await Bench(object()).ear.run()
