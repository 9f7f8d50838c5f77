"""The thin HTTP client: verbs on paths, plain dicts in and out, faults instead of statuses.

It repeats only what may be repeated, a few times and for seconds (everything slower belongs to
the callers): GET, PUT, DELETE and merging PATCHes after a refused connection, a broken one, 429 or
5xx; a POST only when it provably was not served. Node leases get a client of their own, so that a
renewal never queues behind pods.

Fed by ``kube.transport``; feeds everything else in ``kube`` and ``server.auth``.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from enum import StrEnum
from typing import Any, Self
from urllib.parse import urlencode

import orjson
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
)

from vk_provider.faults import GoneError, KubeError, KubeUnavailableError
from vk_provider.kube.answers import LEAST_FAULT, TOO_MANY_REQUESTS, decode, fault_of
from vk_provider.kube.observer import Observer, Unobserved, resource_of
from vk_provider.kube.transport import NOT_SENT, Identity, Request, Transport, read_lines
from vk_provider.pods.types import Json

FIELD_MANAGER = "vk-provider"
PAGE_SIZE = 500
MOST_TRIES = 5
LONGEST_RETRY_SECONDS = 15.0

JsonBody = Mapping[str, Any] | Sequence[Any]


class PatchKind(StrEnum):
    """How a PATCH is applied; strategic merge is what a kubelet uses."""

    STRATEGIC = "application/strategic-merge-patch+json"
    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"


class KubeClient:
    """One identity's calls to one API server. Use as an async context manager."""

    def __init__(
        self,
        credentials: Identity,
        *,
        connections: int = 16,
        timeout_seconds: float = 30.0,
        observer: Observer | None = None,
    ) -> None:
        self.serves_watch_list = True
        """False once the API server has refused ``sendInitialEvents``; ``kube.watch`` sets it."""
        self.observer: Observer = observer or Unobserved()
        """Told of every answer; ``kube.watch`` tells it of resumed watches."""
        self._transport = Transport(credentials, connections, timeout_seconds)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._transport.__aexit__(*failure)

    async def get(self, path: str, *, retry: bool = True, **params: Any) -> dict[str, Any]:
        """GET one object or one page of a list."""
        return await self._call(
            Request("GET", _url(path, params)), tries=MOST_TRIES if retry else 1
        )

    async def list(
        self, path: str, *, retry: bool = True, **params: Any
    ) -> tuple[Sequence[dict[str, Any]], str]:
        """GET all pages; the items carry apiVersion and kind, which a list leaves out."""
        items: list[dict[str, Any]] = []
        paging: dict[str, Any] = {"limit": PAGE_SIZE}
        while True:
            try:
                page = await self.get(path, retry=retry, **params, **paging)
            except GoneError:
                if "continue" not in paging:
                    raise
                # The pages outlived their version: begin again, all in one page.
                items, paging = [], {}
                continue
            metadata = _adopt_page(items, page)
            if not metadata.get("continue"):
                return items, metadata.get("resourceVersion", "")
            paging = {"limit": PAGE_SIZE, "continue": metadata["continue"]}

    async def create(
        self, path: str, body: Json, *, retry: bool = True, strict: bool = False
    ) -> dict[str, Any]:
        """POST an object to its collection. Repeated only if it provably was not served.
        ``strict``: a field that the API server does not know is refused, otherwise dropped."""
        tries = MOST_TRIES if retry else 1
        validation = {"fieldValidation": "Strict"} if strict else {}
        request = _write("POST", path, body, **validation)
        return await self._call(request, repeatable=False, tries=tries)

    async def replace(self, path: str, body: Json, *, retry: bool = True) -> dict[str, Any]:
        """PUT an object. With ``metadata.resourceVersion`` it is conditional, and a repeat after a
        lost answer ends in :class:`~vk_provider.faults.ConflictError` although it was ours."""
        return await self._call(_write("PUT", path, body), tries=MOST_TRIES if retry else 1)

    async def patch(
        self, path: str, body: JsonBody, *, kind: PatchKind = PatchKind.STRATEGIC
    ) -> dict[str, Any]:
        """PATCH an object; a merging patch means the same twice, so it may be repeated."""
        request = _write("PATCH", path, body, kind)
        return await self._call(request, repeatable=kind is not PatchKind.JSON)

    async def delete(
        self, path: str, *, uid: str | None = None, grace_seconds: int | None = None
    ) -> dict[str, Any]:
        """DELETE an object, only the one with this ``uid`` if one is given."""
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        return await self._call(Request("DELETE", path, orjson.dumps(options)))

    @asynccontextmanager
    async def stream_lines(
        self, path: str, params: Mapping[str, Any]
    ) -> AsyncGenerator[AsyncIterator[Sequence[bytes]], None]:
        """GET a stream of lines (a watch): an iterator over the lines that arrived together.

        Lines have no length limit. Nothing is repeated here, and silence is the caller's business;
        a stream that breaks raises :class:`~vk_provider.faults.KubeUnavailableError`.
        """
        request = Request("GET", _url(path, params))
        try:
            response = await self._transport.open_stream(request)
        except KubeError as fault:
            self.observer.request("WATCH", resource_of(path), fault.code)
            raise
        self.observer.request("WATCH", resource_of(path), response.status)
        try:
            async with aclosing(read_lines(response.content, request.call)) as lines:
                yield lines
        finally:
            response.close()

    async def _call(
        self, request: Request, *, repeatable: bool = True, tries: int = MOST_TRIES
    ) -> dict[str, Any]:
        repeats = _repeats_anything if repeatable else _repeats_unserved
        try:
            return await self._once(request)
        except KubeUnavailableError as fault:
            if tries == 1 or not repeats(fault):
                raise
            # Only now: the machinery of repeats costs as much as a request.
            first: KubeUnavailableError | None = fault

        async def attempt() -> dict[str, Any]:
            nonlocal first
            if first is not None:
                fault, first = first, None
                raise fault
            return await self._once(request)

        retrying = AsyncRetrying(
            retry=retry_if_exception(repeats),
            stop=stop_after_attempt(tries) | stop_before_delay(LONGEST_RETRY_SECONDS),
            wait=_pause,
            reraise=True,
        )
        return await retrying(attempt)

    async def _once(self, request: Request) -> dict[str, Any]:
        resource = resource_of(request.target)
        try:
            answer = await self._transport.send(request)
        except KubeError as fault:
            self.observer.request(request.verb, resource, fault.code)
            raise
        self.observer.request(request.verb, resource, answer.code)
        if answer.code >= LEAST_FAULT:
            raise fault_of(answer.code, answer.body, request.call, answer.retry_after)
        return decode(answer.body, request.call)


def _write(
    verb: str, path: str, body: JsonBody, content_type: str = "application/json", **params: str
) -> Request:
    target = _url(path, {"fieldManager": FIELD_MANAGER, **params})
    return Request(verb, target, orjson.dumps(body), content_type)


def _url(path: str, params: Mapping[str, Any]) -> str:
    given = {key: _text(value) for key, value in params.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _adopt_page(items: list[dict[str, Any]], page: dict[str, Any]) -> Mapping[str, str]:
    kind = str(page.get("kind", "")).removesuffix("List")
    for item in page.get("items") or ():
        item.setdefault("apiVersion", page.get("apiVersion", "v1"))
        item.setdefault("kind", kind)
        items.append(item)
    return page.get("metadata") or {}


def _repeats_anything(error: BaseException) -> bool:
    return isinstance(error, KubeUnavailableError) and error.reason != "GarbledAnswer"


def _repeats_unserved(error: BaseException) -> bool:
    """A refused connection and 429 are the two answers that prove that nothing was done."""
    return isinstance(error, KubeUnavailableError) and (
        error.reason == NOT_SENT or error.code == TOO_MANY_REQUESTS
    )


def _pause(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    wish = error.retry_after_seconds if isinstance(error, KubeUnavailableError) else None
    longest = min(0.25 * 2.0 ** (state.attempt_number - 1), 4.0)
    return (wish or 0.0) + longest * random.uniform(0.5, 1.0)
