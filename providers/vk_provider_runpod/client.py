"""RunPod's REST v2, one method per endpoint; what goes wrong is one of our faults.

Fed by ``provider`` and ``logs``; speaks through ``transport``. Nothing here knows Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote

import aiohttp

from vk_provider.faults import GarbledAnswerError, OutcomeUnknownError
from vk_provider_runpod.answers import fault_of, read_object
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.market import Market
from vk_provider_runpod.transport import Call, ReadKey, Transport, server_time

PAGE_SIZE = 1000
MOST_PAGES = 1000


class RunPodClient(Market):
    """One account. Use as an async context manager."""

    def __init__(
        self,
        config: RunPodConfig,
        user_agent: str,
        read_key: ReadKey,
        may_create: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(config, Transport(config, user_agent, read_key, may_create))

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._transport.__aexit__(*exc)

    async def create_pod(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """``POST /v2/pods``. The answer may lack anything but the id."""
        secrets = tuple(str(value) for value in body.get("env", {}).values())
        timeout = self._config.create_timeout_seconds
        call = Call("create pod", "POST", "/pods", body, None, secrets, timeout)
        answer = await self._transport.send(call)
        created = read_object(answer)
        if not isinstance(created.get("id"), str) or not created["id"]:
            raise OutcomeUnknownError("RunPod, create pod: the answer names no id")
        return created

    async def delete_pod(self, pod_id: str) -> None:
        """``DELETE /v2/pods/{id}``: 204 without a body, and gone already is as good."""
        answer = await self._transport.send(
            Call("delete pod", "DELETE", f"/pods/{quote(pod_id, safe='')}")
        )
        if answer.status != 404 and not 200 <= answer.status < 300:
            raise fault_of(answer)

    async def get_pod(self, pod_id: str) -> Mapping[str, Any] | None:
        """``GET /v2/pods/{id}``, None where there is none."""
        answer = await self._transport.send(
            Call("get pod", "GET", f"/pods/{quote(pod_id, safe='')}")
        )
        return None if answer.status == 404 else read_object(answer)

    async def list_pods(self) -> tuple[list[Mapping[str, Any]], datetime]:
        """Every pod of the account, and the server's time at the start of the walk.

        Pages may shift while they are read, so an id counts once. Anything that makes the walk
        incomplete raises ``GarbledAnswerError`` or ``UnavailableError``.
        """
        found: dict[str, Mapping[str, Any]] = {}
        seen: set[str] = set()
        cursor: str | None = None
        moment: datetime | None = None
        for _ in range(MOST_PAGES):
            query = {"limit": str(PAGE_SIZE), **({"cursor": cursor} if cursor else {})}
            answer = await self._transport.send(Call("list pods", "GET", "/pods", query=query))
            moment = moment or server_time(answer.headers)
            page = read_object(answer)
            _collect(page, found)
            cursor = _next_cursor(page)
            if cursor is None:
                return list(found.values()), moment
            if cursor in seen:
                break
            seen.add(cursor)
        raise GarbledAnswerError("RunPod, list pods: the pages never end, so the list is partial")

    async def list_registries(self) -> Mapping[str, Any]:
        """``GET /v2/registries``."""
        return read_object(
            await self._transport.send(Call("list registries", "GET", "/registries"))
        )

    async def create_registry(self, body: Mapping[str, str]) -> Mapping[str, Any]:
        """``POST /v2/registries``."""
        secrets = (body["username"], body["password"])
        call = Call("create registry", "POST", "/registries", body, secrets=secrets)
        return read_object(await self._transport.send(call))

    async def delete_registry(self, registry_id: str) -> None:
        """``DELETE /v2/registries/{id}``; gone already is as good. In use it is refused."""
        path = f"/registries/{quote(registry_id, safe='')}"
        answer = await self._transport.send(Call("delete registry", "DELETE", path))
        if answer.status != 404 and not 200 <= answer.status < 300:
            raise fault_of(answer)

    async def get_network_volume(self, volume_id: str) -> Mapping[str, Any] | None:
        """``GET /v2/network-volumes/{id}``, None where there is none."""
        path = f"/network-volumes/{quote(volume_id, safe='')}"
        answer = await self._transport.send(Call("get network volume", "GET", path))
        return None if answer.status == 404 else read_object(answer)

    def open_logs(
        self, pod_id: str, query: Mapping[str, str], resume: str | None
    ) -> AbstractAsyncContextManager[tuple[aiohttp.StreamReader, datetime]]:
        """``GET /v2/pods/{id}/logs``: the bytes of the event stream, and the server's time. Reads
        are the caller's to bound, since a quiet pod sends nothing."""
        path = f"/pods/{quote(pod_id, safe='')}/logs"
        headers = {"Accept": "text/event-stream"}
        if resume is not None:
            headers["Last-Event-ID"] = resume
        return self._transport.stream(Call("read logs", "GET", path, query=query), headers)


def _collect(page: Mapping[str, Any], found: dict[str, Mapping[str, Any]]) -> None:
    pods = page.get("pods")
    if not isinstance(pods, list):
        raise GarbledAnswerError("RunPod, list pods: the answer has no list of pods")
    for pod in pods:
        if not isinstance(pod, dict) or not isinstance(pod.get("id"), str) or not pod["id"]:
            raise GarbledAnswerError("RunPod, list pods: an entry has no id")
        found.setdefault(pod["id"], pod)


def _next_cursor(page: Mapping[str, Any]) -> str | None:
    pagination = page.get("pagination")
    if not isinstance(pagination, dict):
        return None  # the documented list has no pages
    cursor = pagination.get("nextCursor")
    if not pagination.get("hasNextPage"):
        return None
    if not isinstance(cursor, str) or not cursor:
        raise GarbledAnswerError("RunPod, list pods: more pages are promised without a cursor")
    return cursor
