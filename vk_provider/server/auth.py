"""Who may call the kubelet API: no request passes without a name and a right.

A client certificate signed by the client CA (verified in the handshake), else a bearer token that
the API server knows; then a SubjectAccessReview with a kubelet's attributes. There is no anonymous
access, and a review that fails refuses. Fed by every request; feeds the endpoints.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from vk_provider.faults import KubeError
from vk_provider.log import scrub
from vk_provider.server.access import (
    AccessAttributes,
    Identity,
    Reviewer,
    certificate_identity,
    forbidden_text,
    verb_and_subresources,
)
from vk_provider.server.expiring import Expiring
from vk_provider.server.limits import Endpoint, Middleware

_log = logging.getLogger(__name__)
_LONGEST_TOKEN = 16 * 1024


@dataclass(frozen=True, slots=True)
class CacheTimes:
    """How long answers of the API server are believed: a kubelet's defaults."""

    token_seconds: float = 120.0
    allow_seconds: float = 300.0
    deny_seconds: float = 30.0
    size: int = 4096


class Authorizer:
    """Names callers and asks what they may, with a bounded memory of the answers."""

    def __init__(
        self,
        reviewer: Reviewer,
        node_name: str,
        times: CacheTimes = CacheTimes(),
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._reviewer = reviewer
        self._node_name = node_name
        self._times = times
        self._wall_clock = wall_clock
        self._tokens: Expiring[bytes, Identity | None] = Expiring(times.size, clock)
        self._rights: Expiring[AccessAttributes, bool] = Expiring(times.size, clock)

    def middleware(self) -> Middleware:
        """What every request passes, those for unknown paths included."""

        @web.middleware
        async def middleware(request: web.Request, handler: Endpoint) -> web.StreamResponse:
            await self.admit(request)
            return await handler(request)

        return middleware

    async def admit(self, request: web.Request) -> Identity:
        """The caller, if they may do what they ask.

        Raises:
            web.HTTPUnauthorized, web.HTTPForbidden, web.HTTPInternalServerError.
        """
        try:
            identity = await self._identify(request)
        except KubeError as error:
            _log.warning("the API server could not review a token: %s", error)
            raise web.HTTPInternalServerError(text="Authentication error") from error
        if identity is None:
            refusal = web.HTTPUnauthorized(text="Unauthorized")
            refusal.force_close()  # strangers keep no connection
            raise refusal
        verb, subresources = verb_and_subresources(request.method, _path(request))
        for subresource in subresources:
            question = AccessAttributes(identity, verb, self._node_name, subresource)
            if await self._may(question):
                return identity
        raise web.HTTPForbidden(text=scrub(forbidden_text(identity, verb, subresources)))

    async def _identify(self, request: web.Request) -> Identity | None:
        certificate = request.get_extra_info("peercert")
        identity = certificate_identity(certificate, self._wall_clock())
        return identity if identity is not None else await self._identify_token(request)

    async def _identify_token(self, request: web.Request) -> Identity | None:
        scheme, _, token = request.headers.get("Authorization", "").strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > _LONGEST_TOKEN:
            return None
        # The key is a digest, so that no token stays in memory for minutes.
        key = hashlib.sha256(token.encode()).digest()
        known = self._tokens.get(key)
        if known is not None:
            return known[0]
        identity = await self._reviewer.token_review(token)
        seconds = self._times.deny_seconds if identity is None else self._times.token_seconds
        self._tokens.put(key, identity, seconds)
        return identity

    async def _may(self, question: AccessAttributes) -> bool:
        known = self._rights.get(question)
        if known is not None:
            return known[0]
        try:
            allowed = await self._reviewer.access_review(question)
        except KubeError as error:
            _log.warning("the API server could not review the rights of a caller: %s", error)
            raise web.HTTPInternalServerError(text=_error_text(question)) from error
        seconds = self._times.allow_seconds if allowed else self._times.deny_seconds
        self._rights.put(question, allowed, seconds)
        return allowed


def _path(request: web.Request) -> str:
    """What the router matched, so that no spelling of a path is judged as another one."""
    resource = request.match_info.route.resource
    return request.path if resource is None else resource.canonical


def _error_text(question: AccessAttributes) -> str:
    return scrub(
        f"Authorization error (user={question.identity.user}, verb={question.verb}, "
        f"resource=nodes, subresource={question.subresource})"
    )
