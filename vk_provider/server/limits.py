"""How much a stranger may cost us: bounds of connections, requests, headers and time.

Fed by ``app``; read by the listener and the bounds middleware.
"""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler as Endpoint
from aiohttp.typedefs import Middleware

__all__ = ["Endpoint", "Limits", "Middleware", "bounded"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one listener. The idle time is a real kubelet's. A request line holds the whole
    command of an exec, escaped. A connection too many ends the oldest
    one that has asked for nothing yet, and is refused where there is none; with ``oldest_goes`` it
    ends the oldest of all, where each is a matter of moments."""

    connections: int = 1024
    oldest_goes: bool = False
    requests: int = 512
    request_line_bytes: int = 128 * 1024
    header_line_bytes: int = 16 * 1024
    headers: int = 100
    body_bytes: int = 64 * 1024
    handshake_seconds: float = 10.0
    first_request_seconds: float = 20.0
    idle_seconds: float = 90.0
    close_seconds: float = 5.0


def bounded(limits: Limits) -> Middleware:
    """A middleware that refuses what is too large, or too much at once."""
    running = 0

    @web.middleware
    async def middleware(request: web.Request, handler: Endpoint) -> web.StreamResponse:
        nonlocal running
        if (request.content_length or 0) > limits.body_bytes:
            raise web.HTTPRequestEntityTooLarge(
                limits.body_bytes, request.content_length or 0, text="The request body is too large"
            )
        if running >= limits.requests:
            raise web.HTTPServiceUnavailable(
                text="Too many requests at once, try again", headers={"Retry-After": "1"}
            )
        running += 1
        try:
            return await handler(request)
        finally:
            running -= 1

    return middleware
