"""The model API server without a socket, for tests in virtual time.

`MemoryClient` is the real client, with its retries and faults, over a transport that hands each
request to the model's store at once. It goes away when told to, and lies as the model does.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qsl

import orjson
from aiohttp import web

from tests.support import model_apiserver as model
from tests.support.model_objects import Target, parse_target, selectors_of
from vk_provider.faults import KubeUnavailableError
from vk_provider.kube.answers import fault_of
from vk_provider.kube.client import KubeClient
from vk_provider.kube.observer import Observer
from vk_provider.kube.transport import NOT_SENT, Answer, Request

Object = dict[str, Any]


@dataclass
class MemoryApi:
    """The API server: a store, a record of calls, and what is wrong with it at the moment."""

    store: model.ModelStore = field(default_factory=model.ModelStore)
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    refusals: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    away: bool = False
    delay: float = 0.0
    allow_reviews: bool = False
    """Whether whoever asks what he may is told that he may."""

    def refuse(self, verb: str, path: str, *codes: int) -> None:
        """Answer the next calls of this verb whose path ends so with these statuses."""
        self.refusals.setdefault((verb, path), []).extend(codes)

    def go(self) -> None:
        """Refuse every connection, and cut the watches."""
        self.away = True
        for watcher in tuple(self.store.watchers):
            watcher.pending.put_nowait(None)

    def come_back(self) -> None:
        """Serve again."""
        self.away = False

    def count(self, verb: str, path: str = "") -> int:
        """How many calls of this verb had this in their path."""
        return sum(call[0] == verb and path in call[1] for call in self.calls)

    def get(self, resource: str, name: str, namespace: str = "default") -> Object | None:
        """An object of the store."""
        return self.store.objects.get((resource, namespace, name))

    def pod(self, name: str) -> Object:
        """A pod of the store; it must be there."""
        found = self.get("pods", name)
        assert found is not None, f"pod {name} is gone"
        return found

    def phases(self) -> Counter[str]:
        """How many pods are in which phase."""
        return Counter(
            obj.get("status", {}).get("phase", "Pending")
            for (resource, _, _), obj in self.store.objects.items()
            if resource == "pods"
        )

    def events(self) -> list[str]:
        """The reasons of all Events."""
        return [
            obj["reason"] for (kind, _, _), obj in self.store.objects.items() if kind == "events"
        ]

    def code_for(self, verb: str, path: str) -> int | None:
        """The status to lie with, if there is to be one."""
        for (wanted, tail), codes in self.refusals.items():
            if wanted == verb and path.endswith(tail) and codes:
                return codes.pop(0)
        return None


class MemoryTransport:
    """Implements what the client needs of its transport."""

    def __init__(self, api: MemoryApi) -> None:
        self._api = api

    async def __aenter__(self) -> MemoryTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def send(self, request: Request) -> Answer:
        """One request, one answer."""
        path, _, query = request.target.partition("?")
        await asyncio.sleep(self._api.delay)
        if self._api.away:
            raise KubeUnavailableError(f"{request.call}: refused", reason=NOT_SENT)
        body = orjson.loads(request.payload) if request.payload else None
        self._api.calls.append((request.verb, path, body))
        code = self._api.code_for(request.verb, path)
        if code is not None:
            status = {"kind": "Status", "code": code, "message": "told to fail", "reason": ""}
            return Answer(code, orjson.dumps(status))
        if path == "/version":
            return Answer(200, b'{"gitVersion": "v1.36.0"}')
        if path.endswith("/selfsubjectaccessreviews"):
            return Answer(201, orjson.dumps({"status": {"allowed": self._api.allow_reviews}}))
        given = SimpleNamespace(
            query=dict(parse_qsl(query)), headers={"Content-Type": request.content_type}
        )
        serve = model._VERBS[request.verb]
        answer = serve(self._api.store, parse_target(path), cast("web.Request", given), body)
        return Answer(answer.status, cast("bytes", answer.body))


class MemoryClient(KubeClient):
    """The client, over the store in memory."""

    def __init__(self, api: MemoryApi, observer: Observer | None = None) -> None:
        super().__init__(model.ModelIdentity("http://memory"), observer=observer)
        self.serves_watch_list = False
        self._api = api
        self._transport = cast("Any", MemoryTransport(api))

    @asynccontextmanager
    async def stream_lines(
        self, path: str, params: Mapping[str, Any]
    ) -> AsyncGenerator[AsyncIterator[Sequence[bytes]], None]:
        """A watch of the store."""
        query = {key: str(value) for key, value in params.items() if value is not None}
        target = parse_target(path)
        if self._api.away:
            raise KubeUnavailableError(f"GET {path}: refused", reason=NOT_SENT)
        code = self._api.code_for("WATCH", path)
        if code is not None:
            raise fault_of(code, b'{"kind":"Status","message":"told to fail"}', f"GET {path}", None)
        watcher = _watcher(self._api.store, target, query)
        self._api.store.watchers.add(watcher)
        try:
            yield _lines(watcher)
        finally:
            self._api.store.watchers.discard(watcher)


def _watcher(store: model.ModelStore, target: Target, query: Mapping[str, str]) -> model.Watcher:
    nobody = cast("Any", None)
    watcher = model.Watcher(target, selectors_of(query), nobody, nobody)
    for kind, obj in store.since(int(query.get("resourceVersion") or 0), target):
        model.offer_if_matching(watcher, kind, obj)
    return watcher


async def _lines(watcher: model.Watcher) -> AsyncIterator[Sequence[bytes]]:
    while (line := await watcher.pending.get()) is not None:
        yield [line]
