"""A small API server for the faults that a real one can't be made to give.

It stores objects, lists with pages and selectors, watches with bookmarks and WatchList, applies
merging patches, and keeps preconditions; then it lies when told to: 410 as status or as event,
silence, cut connections, refused connections, storms of 429, bytes split anywhere, 403.

Fed by ``kube.client`` over a real socket and by tests directly; feeds ``requests``, the record of
every call that came in.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import orjson
from aiohttp import web

from tests.support.model_objects import (
    Target,
    matches,
    merge,
    parse_target,
    selectors_of,
)

Object = dict[str, Any]


@dataclass(frozen=True)
class Recorded:
    """One call as it came in."""

    at: float
    verb: str
    path: str
    query: Mapping[str, str]
    body: Any
    headers: Mapping[str, str]


@dataclass
class Lie:
    """An answer given instead of the truth, to the next ``times`` calls that match."""

    code: int
    verb: str | None = None
    path: str = ""
    times: int = 1
    reason: str = ""
    message: str = "told to fail"
    retry_after: str | None = None
    body: bytes | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    after_commit: bool = False
    """The call is served, then the connection is cut: its caller never learns the outcome."""
    until: asyncio.Event | None = None
    """Nothing is answered before."""

    def fits(self, request: web.Request) -> bool:
        """Whether this lie is for this call."""
        return (
            self.times > 0
            and self.verb in (None, request.method)
            and self.path in request.path
            and all(request.query.get(key) == value for key, value in self.query.items())
        )


@dataclass(eq=False)
class Watcher:
    """One open watch."""

    target: Target
    selectors: tuple[str, str]
    response: web.StreamResponse
    request: web.Request
    pending: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)

    def offer(self, kind: str, obj: Object) -> None:
        """Queue one watch event."""
        self.pending.put_nowait(orjson.dumps({"type": kind, "object": obj}) + b"\n")


class ModelIdentity:
    """What a client needs to speak to the model, with a token that counts its renewals."""

    ssl = True
    server_hostname = None
    proxy = None

    def __init__(self, server: str) -> None:
        self.server = server
        self.refreshed = 0

    async def headers(self) -> dict[str, str]:
        """A bearer token that changes with each refresh."""
        return {"Authorization": f"Bearer token-{self.refreshed}"}

    async def refresh(self) -> None:
        """The server said 401."""
        self.refreshed += 1


class ModelStore:
    """Objects, their versions, and the history that watches resume from."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.history: list[tuple[int, str, str, Object]] = []
        self.oldest = 0
        self.watchers: set[Watcher] = set()
        self._versions = itertools.count(1001)
        self.version = 1000

    def put(self, resource: str, obj: Object) -> Object:
        """Create or replace an object, as if somebody else had."""
        stored = copy.deepcopy(obj)
        metadata = stored.setdefault("metadata", {})
        key = (resource, metadata.get("namespace", ""), metadata["name"])
        kind = "MODIFIED" if key in self.objects else "ADDED"
        metadata.setdefault("uid", str(uuid.uuid4()))
        self._record(kind, resource, stored)
        self.objects[key] = stored
        return stored

    def remove(self, resource: str, namespace: str, name: str) -> Object:
        """Delete an object, as if somebody else had."""
        obj = copy.deepcopy(self.objects.pop((resource, namespace, name)))
        self._record("DELETED", resource, obj)
        return obj

    def select(self, target: Target, selectors: tuple[str, str]) -> list[Object]:
        """The objects of a collection that match."""
        return [
            obj
            for (resource, namespace, _), obj in sorted(self.objects.items())
            if resource == target.resource
            and target.namespace in (None, namespace)
            and matches(obj, selectors)
        ]

    def expire(self) -> None:
        """Forget all history: no older resourceVersion can be watched from."""
        self.version = next(self._versions)
        self.oldest = self.version
        self.history.clear()

    def since(self, version: int, target: Target) -> list[tuple[str, Object]]:
        """The changes of a collection after a version."""
        return [
            (kind, obj)
            for at, kind, resource, obj in self.history
            if at > version and resource == target.resource
        ]

    def _record(self, kind: str, resource: str, obj: Object) -> None:
        self.version = next(self._versions)
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, kind, resource, obj))
        for watcher in self.watchers:
            scope = watcher.target
            if resource == scope.resource and scope.namespace in (
                None,
                obj["metadata"].get("namespace"),
            ):
                offer_if_matching(watcher, kind, obj)


class ModelApiServer:
    """The model, on a port of its own. Use as an async context manager."""

    def __init__(self) -> None:
        self.store = ModelStore()
        self.requests: list[Recorded] = []
        self.lies: list[Lie] = []
        self.watch_list_served = True
        self.expire_as_event = False
        self.stalled = False
        self.close_watches_at_once = False
        self.cut_after: int | None = None
        """The next watch list ends after so many of its initial events."""
        self.piece_bytes = 0
        self.port = 0
        self._runner = web.AppRunner(
            _application(self), shutdown_timeout=0.1, handler_cancellation=True
        )
        self._site: web.TCPSite | None = None

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await self.serve()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.drop_watches()
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        """Where it listens, also while it refuses connections."""
        return f"http://127.0.0.1:{self.port}"

    def identity(self) -> ModelIdentity:
        """Credentials for it."""
        return ModelIdentity(self.url)

    async def serve(self) -> None:
        """Listen (again), on the same port."""
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await self._site.start()
        self.port = self._runner.addresses[0][1]

    async def refuse(self) -> None:
        """Stop listening and cut what is open, as a killed API server does."""
        if self._site is not None:
            await self._site.stop()
            self._site = None
        for connection in list(self._runner.server.connections if self._runner.server else ()):
            if connection.transport is not None:
                connection.transport.abort()

    def lie(self, code: int, **rest: Any) -> Lie:
        """Answer the next matching calls with this status; see :class:`Lie`."""
        self.lies.append(Lie(code, **rest))
        return self.lies[-1]

    def drop_watches(self) -> None:
        """End all open watches cleanly, as is done to slow readers."""
        for watcher in self.store.watchers:
            watcher.pending.put_nowait(None)

    def send_to_watches(self, kind: str, obj: Object | None = None) -> None:
        """Put a bookmark (the default object), an ERROR or anything else into all watches."""
        bookmark = {"metadata": {"resourceVersion": str(self.store.version)}}
        for watcher in self.store.watchers:
            watcher.offer(kind, obj or bookmark)


def offer_if_matching(watcher: Watcher, kind: str, obj: Object) -> None:
    """One change for one watcher."""
    if matches(obj, watcher.selectors):
        watcher.offer(kind, copy.deepcopy(obj))


def _application(server: ModelApiServer) -> web.Application:
    async def answer(request: web.Request) -> web.StreamResponse:
        return await _answer(server, request)

    application = web.Application(client_max_size=64 << 20)
    application.router.add_route("*", "/{path:.*}", answer)
    return application


async def _answer(server: ModelApiServer, request: web.Request) -> web.StreamResponse:
    raw = await request.read()
    body = orjson.loads(raw) if raw else None
    server.requests.append(
        Recorded(
            time.monotonic(),
            request.method,
            request.path,
            dict(request.query),
            body,
            dict(request.headers),
        )
    )
    lie = next((lie for lie in server.lies if lie.fits(request)), None)
    if lie is not None:
        lie.times -= 1
        if lie.until is not None:
            await lie.until.wait()
        if not lie.after_commit:
            return _lying(lie)
    target = parse_target(request.path)
    if request.method == "GET" and request.query.get("watch") == "true":
        return await _watch(server, request, target)
    answer = _VERBS[request.method](server.store, target, request, body)
    if lie is not None and request.transport is not None:
        request.transport.abort()
    return answer


def _lying(lie: Lie) -> web.Response:
    headers = {"Retry-After": lie.retry_after} if lie.retry_after is not None else {}
    if 300 <= lie.code < 400:
        headers["Location"] = "/api/v1/namespaces/elsewhere/pods"
    if lie.body is not None:
        return web.Response(status=lie.code, body=lie.body, headers=headers)
    return _status(lie.code, lie.reason, lie.message, headers)


def _status(
    code: int, reason: str, message: str, headers: Mapping[str, str] | None = None
) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }
    return _json(status, code, headers)


def _json(obj: Any, code: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        status=code, body=orjson.dumps(obj), content_type="application/json", headers=headers
    )


def _not_found(target: Target) -> web.Response:
    return _status(404, "NotFound", f'{target.resource} "{target.name}" not found')


def _get(store: ModelStore, target: Target, request: web.Request, _: Any) -> web.Response:
    if target.name is not None:
        obj = store.objects.get(target.key)
        return _json(obj) if obj is not None else _not_found(target)
    query = request.query
    version, _, start = query.get("continue", "").partition("@")
    if version and int(version) < store.oldest:
        return _status(410, "Expired", "The provided continue parameter is too old")
    first = int(start or 0)
    items = store.select(target, selectors_of(query))
    last = first + int(query.get("limit") or len(items) or 1)
    metadata = {"resourceVersion": str(store.version)}
    if last < len(items):
        metadata["continue"] = f"{version or store.version}@{last}"
    page = [
        {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
        for obj in items[first:last]
    ]
    kind = next((obj["kind"] for obj in items if "kind" in obj), "Object")
    return _json({"kind": f"{kind}List", "apiVersion": "v1", "metadata": metadata, "items": page})


def _post(store: ModelStore, target: Target, _: web.Request, body: Any) -> web.Response:
    metadata = {**body.get("metadata", {})}
    if target.namespace is not None:
        metadata["namespace"] = target.namespace
    key = (target.resource, target.namespace or "", metadata["name"])
    if key in store.objects:
        return _status(409, "AlreadyExists", f'{target.resource} "{key[2]}" already exists')
    return _json(store.put(target.resource, {**body, "metadata": metadata}), 201)


def _put(store: ModelStore, target: Target, _: web.Request, body: Any) -> web.Response:
    known = store.objects.get(target.key)
    if known is None:
        return _not_found(target)
    expected = body["metadata"].get("resourceVersion")
    if expected not in (None, "", known["metadata"]["resourceVersion"]):
        return _status(409, "Conflict", "the object has been modified")
    metadata = {**body["metadata"], "uid": known["metadata"]["uid"]}
    return _json(store.put(target.resource, {**body, "metadata": metadata}))


def _patch(store: ModelStore, target: Target, request: web.Request, body: Any) -> web.Response:
    known = store.objects.get(target.key)
    if known is None:
        return _not_found(target)
    uid = body.get("metadata", {}).get("uid")
    if uid not in (None, known["metadata"]["uid"]):
        message = f'"{target.name}" is invalid: metadata.uid: Invalid value: field is immutable'
        return _status(422, "Invalid", message)
    strategic = "strategic" in request.headers["Content-Type"]
    return _json(store.put(target.resource, merge(known, body, strategic=strategic)))


def _delete(store: ModelStore, target: Target, _: web.Request, body: Any) -> web.Response:
    known = store.objects.get(target.key)
    if known is None:
        return _not_found(target)
    options = body or {}
    uid = options.get("preconditions", {}).get("uid")
    if uid not in (None, known["metadata"]["uid"]):
        return _status(
            409, "Conflict", "the UID in the precondition does not match the UID in record"
        )
    if target.resource == "pods" and options.get("gracePeriodSeconds") != 0:
        marked = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
        return _json(store.put(target.resource, merge(known, marked, strategic=False)))
    return _json(store.remove(*target.key))


_VERBS = {"GET": _get, "POST": _post, "PUT": _put, "PATCH": _patch, "DELETE": _delete}


async def _watch(
    server: ModelApiServer, request: web.Request, target: Target
) -> web.StreamResponse:
    initial = request.query.get("sendInitialEvents") == "true"
    if initial and not server.watch_list_served:
        return _status(422, "Invalid", "sendInitialEvents is forbidden for watch")
    version = int(request.query.get("resourceVersion") or 0)
    expired = not initial and version < server.store.oldest
    if expired and not server.expire_as_event:
        return _status(410, "Expired", "too old resource version")
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    watcher = Watcher(target, selectors_of(request.query), response, request)
    if expired:
        watcher.offer(
            "ERROR",
            {
                "kind": "Status",
                "code": 410,
                "reason": "Expired",
                "message": "too old resource version",
            },
        )
        watcher.pending.put_nowait(None)
    elif initial:
        most, server.cut_after = server.cut_after, None
        _offer_initial(server.store, watcher, most)
    else:
        for kind, obj in server.store.since(version, target):
            offer_if_matching(watcher, kind, obj)
    if server.close_watches_at_once:
        watcher.pending.put_nowait(None)
    server.store.watchers.add(watcher)
    try:
        await _pump(server, watcher)
    finally:
        server.store.watchers.discard(watcher)
    return response


def _offer_initial(store: ModelStore, watcher: Watcher, most: int | None) -> None:
    for obj in list(store.select(watcher.target, watcher.selectors))[:most]:
        watcher.offer("ADDED", obj)
    if most is not None:
        watcher.pending.put_nowait(None)
        return
    annotations = {"k8s.io/initial-events-end": "true"}
    metadata = {"resourceVersion": str(store.version), "annotations": annotations}
    watcher.offer("BOOKMARK", {"metadata": metadata})


async def _pump(server: ModelApiServer, watcher: Watcher) -> None:
    while (line := await watcher.pending.get()) is not None:
        if server.stalled:
            continue
        size = server.piece_bytes or len(line)
        for start in range(0, len(line), size):
            await watcher.response.write(line[start : start + size])
            if server.piece_bytes:
                # One turn per piece, so that each is a read of its own at the other end.
                await asyncio.sleep(0)
