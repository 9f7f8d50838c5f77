"""``/containerLogs/{namespace}/{pod}/{container}``: what ``kubectl logs`` shows.

Fed by the lookup and a provider's ``read_logs``; feeds the API server, which passes the body on
unchanged and shows the text of an error to the user.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from aiohttp import web

from vk_provider.faults import InstanceNotFoundError, NotSupportedError, ProviderError
from vk_provider.log import scrub
from vk_provider.pods.desired import full_name
from vk_provider.pods.types import Json, LogLine, LogOptions
from vk_provider.provider import SupportsLogs
from vk_provider.server.containers import container_spec, has_ended, log_refusal
from vk_provider.server.limits import Endpoint
from vk_provider.server.log_lines import Lines, Read, log_lines, next_batch, stop
from vk_provider.server.lookup import PodLookup, ServedPod
from vk_provider.wire.logs import LogPipe, LogQueryError, parse_log_query, render_log

_log = logging.getLogger(__name__)
_WRITE_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class LogTimes:
    """How long a backend may stay silent before the header goes out, so that a fault it has at
    once still becomes an HTTP status; and before a follow asks whether the container ended."""

    header_seconds: float = 0.5
    quiet_seconds: float = 5.0


class LogRefusedError(Exception):
    """Why there is no log: an HTTP status and a sentence for the user."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class _Target:
    """One container whose log is asked for."""

    served: ServedPod
    container: str

    @property
    def subject(self) -> str:
        """The container in a kubelet's words."""
        name = self.served.pod.get("metadata", {}).get("name", "")
        return f'container "{self.container}" in pod "{name}"'


def _now() -> datetime:
    return datetime.now(UTC)


def log_endpoint(
    lookup: PodLookup,
    times: LogTimes = LogTimes(),
    clock: Callable[[], datetime] = _now,
) -> Endpoint:
    """The endpoint of container logs."""
    logs = _Logs(lookup, times)

    async def serve(request: web.Request) -> web.StreamResponse:
        try:
            options = parse_log_query(request.query, clock())
            return await logs.answer(request, options)
        except LogQueryError as error:
            return web.Response(status=error.status, text=str(error))
        except LogRefusedError as refusal:
            return web.Response(status=refusal.status, text=scrub(str(refusal)))

    return serve


class _Logs:
    def __init__(self, lookup: PodLookup, times: LogTimes) -> None:
        self._lookup = lookup
        self._times = times

    async def answer(self, request: web.Request, options: LogOptions) -> web.StreamResponse:
        """The whole answer to one request. Raises LogRefusedError."""
        path = request.match_info
        served = self._lookup.find(path["namespace"], path["pod"])
        if served is None:
            raise LogRefusedError(404, f'pod "{path["pod"]}" does not exist')
        target = _Target(served, path["container"])
        if container_spec(served.pod, target.container) is None:
            name = path["pod"]
            raise LogRefusedError(404, f'container "{target.container}" not found in pod "{name}"')
        kept = served.kept_lines.get(target.container)
        if kept is not None and not options.previous:
            return _whole(kept, options)
        batches = log_lines(
            _backend_read(target, options),
            options,
            lambda: self._is_over(path["namespace"], target),
            self._times.quiet_seconds,
        )
        try:
            return await self._stream(request, target, batches, options)
        except LogRefusedError:
            # Its instance may have gone while it was asked: the log was kept before that.
            kept = self._kept(path["namespace"], target)
            if kept is None or options.previous:
                raise
            return _whole(kept, options)

    def _kept(self, namespace: str, target: _Target) -> Sequence[LogLine] | None:
        pod = target.served.pod
        now = self._lookup.find(namespace, pod["metadata"]["name"])
        if now is None or _uid(now.pod) != _uid(pod):
            return None
        return now.kept_lines.get(target.container)

    def _is_over(self, namespace: str, target: _Target) -> bool:
        """Whether what a follow reads can bring no more lines."""
        pod = target.served.pod
        now = self._lookup.find(namespace, pod["metadata"]["name"])
        if now is None or _uid(now.pod) != _uid(pod) or now.ref != target.served.ref:
            return True
        return target.container in now.kept_lines or has_ended(now.pod, target.container)

    async def _stream(
        self,
        request: web.Request,
        target: _Target,
        batches: AsyncGenerator[Lines, None],
        options: LogOptions,
    ) -> web.StreamResponse:
        first = asyncio.create_task(next_batch(batches))
        try:
            await asyncio.wait({first}, timeout=self._times.header_seconds)
            if first.done():
                _raise_refusal(first, target)
            response = web.StreamResponse(headers={"Content-Type": "text/plain"})
            await response.prepare(request)
            try:
                await _pump(response, first, batches, options)
            except (ProviderError, NotSupportedError) as fault:
                # Too late for a status; like a kubelet, say it where the user looks.
                _log.warning("pod %s: a log broke off: %s", full_name(target.served.pod), fault)
                await response.write(
                    f"vk-provider: the log breaks off: {scrub(str(fault))}\n".encode()
                )
            await response.write_eof()
            return response
        finally:
            await stop(first)
            await batches.aclose()


def _uid(pod: Json) -> object:
    return pod.get("metadata", {}).get("uid")


def _whole(kept: Sequence[LogLine], options: LogOptions) -> web.Response:
    return web.Response(body=render_log(kept, options), headers={"Content-Type": "text/plain"})


def _backend_read(target: _Target, options: LogOptions) -> Read:
    """How to read this container's log. Raises LogRefusedError if there is nothing to read."""
    reason = log_refusal(target.served.pod, target.container, options.previous)
    if reason is not None:
        raise LogRefusedError(400, reason)
    provider, ref = target.served.provider, target.served.ref
    if provider is None or ref is None:
        raise LogRefusedError(
            400, f"{target.subject} is not available: {_without_instance(target)}"
        )
    if not isinstance(provider, SupportsLogs):
        raise LogRefusedError(501, f"{target.subject}: its backend does not offer container logs")
    return lambda asked: provider.read_logs(ref, target.container, asked)


def _without_instance(target: _Target) -> str:
    if has_ended(target.served.pod, target.container):
        return "its instance is gone and no log of it was kept"
    return "its instance is not known (yet)"


def _raise_refusal(first: asyncio.Task[Lines | None], target: _Target) -> None:
    """Turn a fault of the very first read into a status."""
    try:
        first.result()
    except NotSupportedError as fault:
        raise LogRefusedError(501, f"{target.subject}: {fault}") from fault
    except InstanceNotFoundError as fault:
        raise LogRefusedError(400, f"{target.subject} is not available: {fault}") from fault
    except ProviderError as fault:
        raise LogRefusedError(400, f"the log of {target.subject} can't be read: {fault}") from fault


async def _pump(
    response: web.StreamResponse,
    first: asyncio.Task[Lines | None],
    batches: AsyncGenerator[Lines, None],
    options: LogOptions,
) -> None:
    """Write lines as fast as the client takes them; at once when it follows."""
    pipe, unsent = LogPipe(options), bytearray()
    try:
        batch = await first
        while batch is not None:
            unsent += pipe.feed_all(batch)
            if unsent and (options.follow or len(unsent) >= _WRITE_BYTES):
                await response.write(bytes(unsent))
                unsent.clear()
            batch = None if pipe.is_full else await next_batch(batches)
    except (ProviderError, NotSupportedError):
        await response.write(bytes(unsent))
        raise
    await response.write(bytes(unsent))
