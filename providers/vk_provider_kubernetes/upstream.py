"""Long-lived connections to the other API server: WebSockets, and answers that are streamed.

Nothing is buffered here beyond what the sockets hold: whoever reads slowly slows the other side.
Fed by ``client`` with an identity; feeds ``commands``, ``ports`` and ``logs``.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import urlencode

import aiohttp
from yarl import URL

import vk_provider
from vk_provider.faults import (
    DeniedError,
    InstanceNotFoundError,
    KubeError,
    ProviderError,
    UnavailableError,
)
from vk_provider.kube.answers import LEAST_FAULT, fault_of
from vk_provider.kube.identity import Credentials
from vk_provider.streams import CHUNK_BYTES
from vk_provider_kubernetes.answers import call_fault

CLOSE_SECONDS = 2.0
CONNECT_SECONDS = 10.0
RECEIVE_BYTES = 1 << 20
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 401, 403, 404

Query = Sequence[tuple[str, str]]


class Upstream:
    """Sockets of their own, so that a hundred streams never hold up a call."""

    def __init__(self, identity: Credentials, timeout_seconds: float) -> None:
        self._identity = identity
        self._timeout_seconds = timeout_seconds
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, socket_factory=_narrow_socket),
            timeout=timeout,
            headers={"User-Agent": f"vk-provider/{vk_provider.__version__}"},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def websocket(
        self, path: str, query: Query, protocols: Sequence[str]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A WebSocket that speaks one of these protocols."""
        socket = await self._opened(path, query, protocols)
        try:
            yield socket
        finally:
            await socket.close()

    @asynccontextmanager
    async def answer(self, path: str, query: Query) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of a GET as it comes, in chunks."""
        response = await self._asked(path, query)
        try:
            yield _chunks(response)
        finally:
            response.close()

    async def _opened(
        self, path: str, query: Query, protocols: Sequence[str], again: bool = True
    ) -> aiohttp.ClientWebSocketResponse:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._sockets.ws_connect(
                    self._url(path, query),
                    protocols=protocols,
                    headers=await self._identity.headers(),
                    ssl=self._identity.ssl,
                    server_hostname=self._identity.server_hostname,
                    proxy=self._identity.proxy,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                    max_msg_size=0,
                )
        except aiohttp.WSServerHandshakeError as refusal:
            if refusal.status != _UNAUTHORIZED or not again:
                raise _handshake_fault(path, refusal) from refusal
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnavailableError(f"GET {path}: {_words(error)}") from error
        await self._identity.refresh()
        return await self._opened(path, query, protocols, again=False)

    async def _asked(self, path: str, query: Query, again: bool = True) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                response = await self._sockets.get(
                    self._url(path, query),
                    headers=await self._identity.headers(),
                    ssl=self._identity.ssl,
                    server_hostname=self._identity.server_hostname,
                    proxy=self._identity.proxy,
                    allow_redirects=False,
                )
                if response.status < LEAST_FAULT:
                    return response
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnavailableError(f"GET {path}: {_words(error)}") from error
        if response.status == _UNAUTHORIZED and again:
            await self._identity.refresh()
            return await self._asked(path, query, again=False)
        refusal: KubeError = fault_of(response.status, body, f"GET {path}")
        raise call_fault(refusal) from refusal

    def _url(self, path: str, query: Query) -> URL:
        asked = f"?{urlencode(query)}" if query else ""
        return URL(self._identity.server + path + asked, encoded=True)

    @property
    def _sockets(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("Upstream is used outside of `async with`")
        return self._session


def _narrow_socket(address: tuple[Any, ...]) -> socket.socket:
    """The kernel would hold tens of megabytes for a client that has stopped reading."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return made


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.content.iter_chunked(CHUNK_BYTES):
            yield chunk
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise UnavailableError(f"the stream broke: {_words(error)}") from error


def _handshake_fault(path: str, refusal: aiohttp.WSServerHandshakeError) -> ProviderError:
    words = f"GET {path}: the other API server refused the stream ({refusal.status})"
    if refusal.status == _NOT_FOUND:
        return InstanceNotFoundError(words)
    if refusal.status in (_UNAUTHORIZED, _FORBIDDEN):
        return DeniedError(f"{words}: its Role lacks create and get of this subresource")
    return UnavailableError(f"{words}: {refusal.message}")


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
