"""The plain port: ``/metrics`` for Prometheus, ``/livez`` and ``/readyz`` for the kubelet below us.

It says nothing about pods and takes no input, so it needs no identity.
Fed by the metrics registry and named checks; feeds scrapers and probes.
"""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from vk_provider.server.checks import Check, check_endpoint, ping
from vk_provider.server.limits import Endpoint, Limits, bounded
from vk_provider.server.listener import Listener

PLAIN_LIMITS = Limits(connections=64, oldest_goes=True, requests=16, first_request_seconds=10.0)
"""Whoever holds connections must not keep the kubelet from its probes, or it ends this process."""


def plain_application(
    registry: CollectorRegistry,
    livez: Mapping[str, Check],
    readyz: Mapping[str, Check],
    limits: Limits = PLAIN_LIMITS,
) -> web.Application:
    """The application behind the plain port."""
    application = web.Application(middlewares=[bounded(limits)])
    application.router.add_get("/metrics", metrics_endpoint(registry))
    for name, checks in (("livez", livez), ("readyz", readyz)):
        serve = check_endpoint(name, {"ping": ping, **checks})
        application.router.add_get(f"/{name}", serve)
        application.router.add_get(f"/{name}/{{check}}", serve)
    return application


def metrics_endpoint(registry: CollectorRegistry) -> Endpoint:
    """The exposition of a registry, in the format that the scraper prefers."""

    async def serve(request: web.Request) -> web.StreamResponse:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    return serve


def plain_listener(
    application: web.Application, host: str, port: int, limits: Limits = PLAIN_LIMITS
) -> Listener:
    """The listener of the plain port; not started yet."""
    return Listener(application, host, port, limits)
