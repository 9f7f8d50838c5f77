"""Sees when pods run and when they are gone, at little cost to the bed that is measured.

One watch of the pods that are Running, metadata only: the API server tells of each pod once when
it begins to run, and once when it ceases to. Fed by the API server; read by `measure`.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from typing import Any, Self

import aiohttp

from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PODS = "/api/v1/namespaces/default/pods"
_RUNNING = {"fieldSelector": "status.phase=Running"}
_LINE_BYTES = 1 << 22
_POLL_SECONDS = 0.05


class Pods:
    """The pods of one bed, as an async context manager."""

    def __init__(self, bed: ControlPlane) -> None:
        self._bed = bed
        self._running: set[str] = set()
        self._changed = asyncio.Event()
        self.session: aiohttp.ClientSession
        self._task: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        pair = self._bed.authority.issue("bench", "bench", ["system:masters"])
        context = ssl.create_default_context(cafile=str(self._bed.ca_file))
        context.load_cert_chain(pair.certificate, pair.key)
        connector = aiohttp.TCPConnector(ssl=context)
        timeout = aiohttp.ClientTimeout(total=None)
        self.session = aiohttp.ClientSession(
            self._bed.url, connector=connector, timeout=timeout, read_bufsize=_LINE_BYTES
        )
        self._task = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.session.close()

    async def all_running(self, count: int, seconds: float) -> float:
        """Return the moment (monotonic) at which this many pods were Running."""
        async with asyncio.timeout(seconds):
            while len(self._running) < count:
                self._changed.clear()
                self._task_is_well()
                await self._changed.wait()
        return time.monotonic()

    async def all_gone(self, seconds: float) -> float:
        """Return the moment (monotonic) at which the API server had no pod any more."""

        async def none() -> bool:
            return not (await self._page({"limit": "1"}))["items"]

        await eventually(none, "no pod left", seconds=seconds, interval=_POLL_SECONDS)
        return time.monotonic()

    @property
    def running(self) -> int:
        """How many run now."""
        return len(self._running)

    def _task_is_well(self) -> None:
        if self._task.done():
            self._task.result()

    async def _page(self, params: dict[str, str]) -> Any:
        async with self.session.get(
            _PODS, params=params, headers={"Accept": _METADATA_LIST}
        ) as answer:
            answer.raise_for_status()
            return await answer.json(content_type=None)

    async def _follow(self) -> None:
        """List, then watch; from the beginning again whenever the watch ends."""
        while True:
            page = await self._page(_RUNNING)
            self._running = {item["metadata"]["uid"] for item in page["items"] or ()}
            self._changed.set()
            await self._watch(page["metadata"]["resourceVersion"])

    async def _watch(self, version: str) -> None:
        params = {**_RUNNING, "watch": "true", "resourceVersion": version}
        async with self.session.get(_PODS, params=params, headers={"Accept": _METADATA}) as answer:
            answer.raise_for_status()
            async for line in answer.content:
                self._take(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        uid = event["object"].get("metadata", {}).get("uid")
        if event["type"] == "DELETED":
            self._running.discard(uid)
        elif event["type"] == "ADDED":
            self._running.add(uid)
        self._changed.set()
