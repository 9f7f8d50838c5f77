"""Requests over sockets: sessions, identity, keep-alive; what can't be reached becomes a fault.

Regular calls share ``connections`` sockets; streams have their own, so a hundred watches never
block a PATCH. A 401 renews the identity once: then nothing was served, so any verb may go again.

Fed by ``kube.credentials``; feeds :class:`vk_provider.kube.client.KubeClient`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import aiohttp
from yarl import URL

import vk_provider
from vk_provider.faults import KubeError, KubeUnavailableError
from vk_provider.kube.answers import LEAST_FAULT, LineSplitter, fault_of

CONNECT_SECONDS = 10.0
STREAM_BUFFER_BYTES = 1 << 20
KEEPALIVE_SECONDS = 30
NOT_SENT = "ConnectFailed"
UNAUTHORIZED = 401


class Identity(Protocol):
    """Where the API server is and who we are; ``kube.credentials.Credentials`` is one."""

    @property
    def server(self) -> str:
        """The API server's URL, without a slash at its end."""

    @property
    def ssl(self) -> ssl.SSLContext | bool:
        """What aiohttp takes as ``ssl``; another object after a rotation."""

    @property
    def server_hostname(self) -> str | None:
        """The name in the API server's certificate, where it is not the URL's."""

    @property
    def proxy(self) -> str | None:
        """The HTTP proxy on the way, if any."""

    async def headers(self) -> dict[str, str]:
        """The headers that say who we are, fresh enough to be used now."""

    async def refresh(self) -> None:
        """Renew what was cached, since the API server answered 401."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request; ``target`` is the path with its query."""

    verb: str
    target: str
    payload: bytes | None = None
    content_type: str = "application/json"

    @property
    def call(self) -> str:
        """How messages name it: verb and path, no query."""
        return f"{self.verb} {self.target.partition('?')[0]}"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, whatever its status."""

    code: int
    body: bytes
    retry_after: str | None = None


class Transport:
    """The sockets of one client. Use as an async context manager."""

    def __init__(self, identity: Identity, connections: int, timeout_seconds: float) -> None:
        self._identity = identity
        self._connections = connections
        self._timeout_seconds = timeout_seconds
        self._regular: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._regular = _session(self._connections, self._timeout_seconds)
        self._streams = _session(0, None)
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in (self._regular, self._streams):
            if session is not None:
                await session.close()

    async def send(self, request: Request) -> Answer:
        """One request and its whole answer."""
        answer = await self._send(request)
        if answer.code == UNAUTHORIZED:
            await self._identity.refresh()
            answer = await self._send(request)
        return answer

    async def open_stream(self, request: Request) -> aiohttp.ClientResponse:
        """One request whose answer goes on; the caller closes it. A refusal is a fault."""
        response = await self._open(request)
        if response.status == UNAUTHORIZED:
            response.close()
            await self._identity.refresh()
            response = await self._open(request)
        if response.status >= LEAST_FAULT:
            raise await _refusal(request.call, response)
        return response

    async def _send(self, request: Request) -> Answer:
        headers = await self._identity.headers()
        if request.payload is not None:
            headers["Content-Type"] = request.content_type
        try:
            async with _opened(self._regular).request(
                request.verb,
                URL(self._identity.server + request.target, encoded=True),
                data=request.payload,
                headers=headers,
                ssl=self._identity.ssl,
                server_hostname=self._identity.server_hostname,
                proxy=self._identity.proxy,
                allow_redirects=False,
            ) as response:
                body = await response.read()
                return Answer(response.status, body, response.headers.get("Retry-After"))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(request.call, self._identity.server, error) from error

    async def _open(self, request: Request) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await _opened(self._streams).request(
                    request.verb,
                    URL(self._identity.server + request.target, encoded=True),
                    headers=await self._identity.headers(),
                    ssl=self._identity.ssl,
                    server_hostname=self._identity.server_hostname,
                    proxy=self._identity.proxy,
                    allow_redirects=False,
                    read_bufsize=STREAM_BUFFER_BYTES,
                )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(request.call, self._identity.server, error) from error


def _session(connections: int, total_seconds: float | None) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, socket_factory=_kept_alive_socket),
        timeout=aiohttp.ClientTimeout(total=total_seconds, sock_connect=CONNECT_SECONDS),
        headers={
            "User-Agent": f"vk-provider/{vk_provider.__version__}",
            "Accept": "application/json",
            # Unpacking a large list would hold the loop for longer than its transfer saves.
            "Accept-Encoding": "identity",
        },
        cookie_jar=aiohttp.DummyCookieJar(),
    )


def _kept_alive_socket(address: tuple[Any, ...]) -> socket.socket:
    """A peer that died without a word is found within about two minutes, not after hours."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("IDLE", KEEPALIVE_SECONDS), ("INTVL", KEEPALIVE_SECONDS), ("CNT", 3)):
        if (number := getattr(socket, f"TCP_KEEP{option}", None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, number, value)
    return made


def _opened(session: aiohttp.ClientSession | None) -> aiohttp.ClientSession:
    if session is None:
        raise RuntimeError("KubeClient is used outside of `async with`")
    return session


async def read_lines(
    content: aiohttp.StreamReader, call: str
) -> AsyncGenerator[Sequence[bytes], None]:
    """The lines of a stream, those that arrived together at a time."""
    splitter = LineSplitter()
    try:
        async for chunk in content.iter_any():
            if lines := splitter.feed(chunk):
                yield lines
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise KubeUnavailableError(f"{call}: the stream broke: {error}") from error


async def _refusal(call: str, response: aiohttp.ClientResponse) -> KubeError:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            body = await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError):
        body = b""
    return fault_of(response.status, body, call, response.headers.get("Retry-After"))


def _unreachable(call: str, server: str, error: Exception) -> KubeUnavailableError:
    unsent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    cause = str(error) or ("no answer in time" if isinstance(error, TimeoutError) else repr(error))
    return KubeUnavailableError(f"{call} at {server}: {cause}", reason=NOT_SENT if unsent else "")
