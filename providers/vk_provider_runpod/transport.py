"""One HTTP call to RunPod, made once, and every way it can fail as one of our faults.

A create call that failed is judged by whether its request had left us: not sent means that
nothing was made, sent means that the outcome is unknown. Whether it may still leave is asked at
that very moment: a process that stood still meanwhile, in a queue or a handshake, leads no more.
Fed by ``client`` with a :class:`Call`; speaks to the service, keeps the session, the key and the
rate budget.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import SimpleNamespace
from typing import Any, Self

import aiohttp

from vk_provider.faults import (
    DeniedError,
    GarbledAnswerError,
    OutcomeUnknownError,
    ProviderError,
    UnavailableError,
)
from vk_provider.pods.masking import words
from vk_provider_runpod.answers import Answer, fault_of
from vk_provider_runpod.budget import Budget
from vk_provider_runpod.config import RunPodConfig

MOST_BYTES = 256 * 2**20
KEY_SECONDS = 60.0

ReadKey = Callable[[], Awaitable[str]]
OnSend = Callable[[Any, SimpleNamespace, Any], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Call:
    """One request: what it is called in messages, and what may not be shown in them."""

    operation: str
    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] | None = None
    secrets: tuple[str, ...] = ()
    timeout_seconds: float | None = None

    @property
    def creates(self) -> bool:
        """Whether a billing instance may come of it."""
        return self.operation == "create pod"


class Transport:
    """Sessions with one account. Use as an async context manager."""

    def __init__(
        self,
        config: RunPodConfig,
        user_agent: str,
        read_key: ReadKey,
        may_create: Callable[[], bool] = lambda: True,
    ) -> None:
        self._may_create = may_create
        self._config = config
        self._user_agent = user_agent
        self._read_key = read_key
        self._budget = Budget(config.requests_per_minute)
        self._session: aiohttp.ClientSession | None = None
        self._creates: aiohttp.ClientSession | None = None
        self._key = ("", 0.0)

    async def __aenter__(self) -> Self:
        self._session = self._open(aiohttp.TCPConnector(limit=0), _note_sent)
        # A create on a kept connection that the server is just closing would be an unknown
        # outcome for no reason, so each has a connection of its own.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        self._creates = self._open(connector, self._let_out)
        return self

    async def __aexit__(self, *exc: object) -> None:
        for session in (self._session, self._creates):
            if session is not None:
                await session.close()

    def _open(self, connector: aiohttp.TCPConnector, on_send: OnSend) -> aiohttp.ClientSession:
        trace = aiohttp.TraceConfig()
        # Called when the connection stands, before the first byte.
        trace.on_request_headers_sent.append(on_send)
        return aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._user_agent, "Accept": "application/json"},
            trace_configs=[trace],
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    @asynccontextmanager
    async def stream(
        self, call: Call, headers: Mapping[str, str]
    ) -> AsyncIterator[tuple[aiohttp.StreamReader, datetime]]:
        """The bytes of an event stream, and the server's time. Reads are the caller's to bound."""
        await self._budget.spend(call.operation)
        key = await self._current_key()
        try:
            async with self._request(call, key, headers) as response:
                self._budget.learn(response.status, response.headers)
                if response.status != 200 or response.content_type != "text/event-stream":
                    raise _stream_fault(await _answer(call, response, key))
                yield response.content, server_time(response.headers)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnavailableError(_transport_words(call, error, key)) from error

    async def send(self, call: Call) -> Answer:
        """The answer, read in full, whatever its status."""
        await self._budget.spend(call.operation, creates=call.creates)
        key = await self._current_key()
        sent = SimpleNamespace(sent=False)
        limit = call.timeout_seconds or self._config.request_timeout_seconds
        try:
            async with asyncio.timeout(limit), self._request(call, key, {}, sent) as response:
                self._budget.learn(response.status, response.headers)
                answer = await _answer(call, response, key)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _transport_fault(call, error, key, was_sent=sent.sent) from error
        if answer.status == 401:
            self._key = ("", 0.0)
        return answer

    def _request(
        self,
        call: Call,
        key: str,
        headers: Mapping[str, str],
        sent: SimpleNamespace | None = None,
    ) -> Any:
        session = self._creates if call.creates else self._session
        if session is None:
            raise UnavailableError("RunPod: the client is not open")
        # A redirect would carry the key to whoever it names, so none is followed.
        return session.request(
            call.method,
            f"{self._config.base_url}/v2{call.path}",
            json=call.body,
            params=call.query,
            headers={**headers, "Authorization": f"Bearer {key}"},
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            trace_request_ctx=sent,
        )

    async def _let_out(self, session: Any, context: SimpleNamespace, params: Any) -> None:
        if not self._may_create():
            raise UnavailableError("RunPod, create pod: not sent, another replica may lead now")
        await _note_sent(session, context, params)

    async def _current_key(self) -> str:
        """The API key, read anew once a minute, so that a rotated one is picked up."""
        value, read_at = self._key
        if not value or time.monotonic() - read_at > KEY_SECONDS:
            value = (await self._read_key()).strip()
            if any(ord(char) < 33 or ord(char) > 126 for char in value):
                raise DeniedError("the RunPod API key holds characters that no key has")
            self._key = (value, time.monotonic())
        return value


async def _note_sent(_session: Any, context: SimpleNamespace, _params: Any) -> None:
    if context.trace_request_ctx is not None:
        context.trace_request_ctx.sent = True


async def _answer(call: Call, response: aiohttp.ClientResponse, key: str) -> Answer:
    body = bytearray()
    async for chunk in response.content.iter_chunked(2**16):
        body += chunk
        if len(body) > MOST_BYTES:
            raise aiohttp.ClientPayloadError(f"more than {MOST_BYTES} bytes")
    text = body.decode("utf-8", errors="replace")
    content_type = response.headers.get("Content-Type", "")
    secrets = (key, *call.secrets)
    return Answer(call.operation, response.status, text, content_type, response.headers, secrets)


def _stream_fault(answer: Answer) -> ProviderError:
    if answer.status != 200:
        return fault_of(answer)
    return GarbledAnswerError("RunPod, read logs: the answer is no event stream")


def _transport_fault(call: Call, error: Exception, key: str, *, was_sent: bool) -> ProviderError:
    message = _transport_words(call, error, key)
    if call.creates and was_sent:
        return OutcomeUnknownError(f"{message}; the request had been sent")
    return UnavailableError(message)


def _transport_words(call: Call, error: Exception, key: str) -> str:
    # An exception's text may quote the request, so what is secret is masked in it too.
    said = words(str(error), (key, *call.secrets)) or "no answer in time"
    return f"RunPod, {call.operation}: {type(error).__name__}: {said}"


def server_time(headers: Mapping[str, str]) -> datetime:
    """The server's own clock, so that no difference of clocks looks like a restart."""
    try:
        moment = parsedate_to_datetime(headers["Date"])
    except (KeyError, TypeError, ValueError):
        return datetime.now(UTC)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
