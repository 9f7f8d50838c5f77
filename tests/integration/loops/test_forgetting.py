"""A node forgets pods that are gone, whichever way they went."""

from __future__ import annotations

import asyncio
import gc
import types
from collections.abc import Iterator
from typing import Any

from tests.integration.loops.bench import Bench
from tests.integration.loops.memory_api import MemoryApi
from vk_provider.kube.events import EventRecorder
from vk_provider.pods.types import PodUID
from vk_provider.testing.builders import make_container, uid_of
from vk_provider.testing.fake import FakeBackend

NAMES = ("gone-ended", "gone-lost", "gone-deleted", "gone-forced", "gone-waiting", "gone-refused")
WAITS = make_container(envFrom=[{"configMapRef": {"name": "absent"}}])
REFUSED = {"annotations": {"fake.vk-provider.dev/unsupported": "spec.hostNetwork"}}
OTHERS = (FakeBackend, MemoryApi, asyncio.AbstractEventLoop, types.ModuleType, type)
IN_HAND = (asyncio.Future, types.CoroutineType)
"""A loop holds the last thing that it looked at."""
BOUNDED = (EventRecorder,)
"""So many objects at most, as its own tests say."""


async def test_pods_that_went_are_forgotten() -> None:
    """Ended, lost, deleted, force-deleted, or before they ran: memory does not grow (C129)."""
    async with Bench(placement={"budget": {"usdPerDay": 1000}}) as bench:
        await _come_and_go(bench)
        assert _remembered(bench)
        await bench.until(lambda: not bench.node.workers.records)
        await bench.settle(1200)
        assert not _remembered(bench)


async def _come_and_go(bench: Bench) -> None:
    for name in NAMES[:4]:
        bench.bind(name, restartPolicy="Never", activeDeadlineSeconds=3600)
    bench.bind("gone-waiting", containers=[WAITS])
    bench.bind("gone-refused", metadata=REFUSED)
    await bench.until(lambda: bench.api.phases()["Running"] == 4)
    (ended,) = bench.cloud.instances_of(PodUID(uid_of("gone-ended")))
    (lost,) = bench.cloud.instances_of(PodUID(uid_of("gone-lost")))
    bench.cloud.end(ended.ref, exit_code=3)
    bench.cloud.lose(lost.ref)
    await bench.until(lambda: bench.api.phases()["Failed"] == 3)
    bench.force_delete("gone-forced")
    for name in set(NAMES) - {"gone-forced"}:
        bench.delete(name)


def _remembered(bench: Bench) -> set[str]:
    """What the node's parts still say of those pods."""
    marks = [mark for name in NAMES for mark in (name, uid_of(name))]
    texts = _texts(bench.node, bench.shell, bench.heartbeat)
    return {text for text in texts if any(mark in text for mark in marks)}


def _texts(*roots: object) -> Iterator[str]:
    """Every text within reach."""
    seen, todo = set[int](), [*roots]
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            yield one
        elif id(one) not in seen and not isinstance(one, OTHERS + IN_HAND + BOUNDED):
            seen.add(id(one))
            todo.extend(_referents(one))


def _referents(one: object) -> list[Any]:
    if isinstance(one, types.FunctionType):  # its globals are the whole program
        return list(one.__closure__ or ())
    if isinstance(one, dict):  # whose keys the collector passes over where they are texts
        return [*one.keys(), *one.values()]
    return gc.get_referents(one)
