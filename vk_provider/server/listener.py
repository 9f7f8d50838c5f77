"""One listening socket for one aiohttp application, guarded against slow and greedy peers.

aiohttp bounds the time between two requests but not the wait for the first one; the guard here
does. Fed by ``app`` and ``plain``; feeds aiohttp.
"""

from __future__ import annotations

import asyncio
import logging
import ssl

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from vk_provider.server.limits import Endpoint, Limits


class _NoHttp(logging.Filter):
    """Keeps what clients send wrong out of the log: a traceback of the parser says nothing, and
    the request that it quotes may hold a token."""

    def filter(self, record: logging.LogRecord) -> bool:
        fault = record.exc_info[1] if record.exc_info else None
        if not isinstance(fault, HttpProcessingError):
            return True
        _log.debug("a client sent no HTTP request: %s", type(fault).__name__)
        return False


_log = logging.getLogger(__name__)
_http_log = logging.getLogger(f"{__name__}.http")
_http_log.addFilter(_NoHttp())


class _Refused(asyncio.Protocol):
    """What a connection over the limit gets: an end."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class _Door:
    """Makes the protocol of each connection and ends those that never ask for anything."""

    def __init__(self, server: web.Server, limits: Limits) -> None:
        self._server = server
        self._limits = limits
        self._silent: dict[web.RequestHandler, asyncio.TimerHandle] = {}

    def __call__(self) -> asyncio.Protocol:
        if not self._has_room():
            return _Refused()
        protocol = self._server()
        loop = asyncio.get_running_loop()
        self._silent[protocol] = loop.call_later(
            self._limits.first_request_seconds, self._expire, protocol
        )
        return protocol

    def _has_room(self) -> bool:
        """Whether one more may come in, perhaps in the place of the oldest that may go: whoever
        has asked for nothing yet, or anybody."""
        open_ones = self._server.connections
        if len(open_ones) < self._limits.connections:
            return True
        ways = (
            each.transport for each in (open_ones if self._limits.oldest_goes else self._silent)
        )
        oldest = next((way for way in ways if way is not None and not way.is_closing()), None)
        if oldest is not None:
            oldest.abort()  # what it has not read would keep it for ever
        return oldest is not None

    def spoke(self, protocol: web.RequestHandler) -> None:
        """A whole request arrived: aiohttp's own time-outs hold from here on."""
        timer = self._silent.pop(protocol, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """Forget all timers."""
        for timer in self._silent.values():
            timer.cancel()
        self._silent.clear()

    def _expire(self, protocol: web.RequestHandler) -> None:
        self._silent.pop(protocol, None)
        protocol.force_close()


class Listener:
    """Serves an application on one address until it is closed."""

    def __init__(
        self,
        application: web.Application,
        host: str,
        port: int,
        limits: Limits,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._address = (host, port)
        self._limits = limits
        self._tls = tls
        self._door: _Door | None = None
        self._socket: asyncio.Server | None = None
        application.middlewares.insert(0, self._note)
        # No handler outlives its client: a follow whose kubectl is gone must free the backend.
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=_http_log,
            handler_cancellation=True,
            shutdown_timeout=limits.close_seconds,
            keepalive_timeout=limits.idle_seconds,
            max_line_size=limits.request_line_bytes,
            max_field_size=limits.header_line_bytes,
            max_headers=limits.headers,
        )

    @web.middleware
    async def _note(self, request: web.Request, handler: Endpoint) -> web.StreamResponse:
        if self._door is not None:
            self._door.spoke(request.protocol)
        return await handler(request)

    async def start(self) -> int:
        """Listen; answers the port, which the system picked if it was asked for port 0.

        Raises:
            OSError: if the address is taken or not ours.
        """
        await self._runner.setup()
        server = self._runner.server
        if server is None:
            raise RuntimeError("aiohttp made no server")
        self._door = _Door(server, self._limits)
        host, port = self._address
        try:
            self._socket = await asyncio.get_running_loop().create_server(
                self._door,
                host,
                port,
                ssl=self._tls,
                ssl_handshake_timeout=self._limits.handshake_seconds if self._tls else None,
                ssl_shutdown_timeout=self._limits.close_seconds if self._tls else None,
            )
        except OSError:
            await self._runner.cleanup()
            raise
        return int(self._socket.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening, give running requests a moment, end the rest. Idempotent."""
        if self._socket is None:
            return
        self._socket.close()
        self._socket = None
        await self._runner.cleanup()
        if self._door is not None:
            self._door.close()
