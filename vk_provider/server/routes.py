"""Every route of the kubelet API in one table: what is served, and what is refused with a sentence.

To add a part of the API, replace its row. Fed by ``app``; feeds aiohttp's router.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson
from aiohttp import web

from vk_provider.pods.types import Json
from vk_provider.server.limits import Endpoint


@dataclass(frozen=True, slots=True)
class Route:
    """One row: any of these methods on this path is answered by that endpoint. Another method
    gets 405 and the methods that are allowed."""

    methods: tuple[str, ...]
    path: str
    serve: Endpoint


@dataclass(frozen=True, slots=True)
class Served:
    """The endpoints that this server has."""

    health: Endpoint
    pods: Endpoint
    running_pods: Endpoint
    container_logs: Endpoint
    exec: Endpoint
    attach: Endpoint
    port_forward: Endpoint
    configz: Endpoint
    metrics: Mapping[str, Endpoint]
    """By path."""


def kubelet_routes(served: Served) -> tuple[Route, ...]:
    """The table."""
    get, stream = ("GET",), ("GET", "POST")
    debug = refuse(405, "Debug endpoints are disabled.")
    node_logs = refuse(501, "logs: a virtual node has no system logs; see those of vk-provider")
    return (
        Route(get, "/healthz", served.health),
        Route(get, "/healthz/{check}", served.health),
        Route(get, "/pods", served.pods),
        Route(get, "/runningpods/", served.running_pods),
        Route(get, "/runningpods", served.running_pods),
        Route(get, "/containerLogs/{namespace}/{pod}/{container}", served.container_logs),
        Route(stream, "/exec/{namespace}/{pod}/{container}", served.exec),
        Route(stream, "/exec/{namespace}/{pod}/{uid}/{container}", served.exec),
        Route(stream, "/attach/{namespace}/{pod}/{container}", served.attach),
        Route(stream, "/attach/{namespace}/{pod}/{uid}/{container}", served.attach),
        Route(stream, "/portForward/{namespace}/{pod}", served.port_forward),
        Route(stream, "/portForward/{namespace}/{pod}/{uid}", served.port_forward),
        Route(("POST",), "/run/{namespace}/{pod}/{container}", debug),
        Route(("POST",), "/run/{namespace}/{pod}/{uid}/{container}", debug),
        *(
            Route(stream if path.startswith("/stats/") else get, path, serve)
            for path, serve in served.metrics.items()
        ),
        Route(get, "/configz", served.configz),
        Route(get, "/logs/{path:.*}", node_logs),
        Route(
            ("POST",),
            "/checkpoint/{namespace}/{pod}/{container}",
            refuse(404, "checkpoint: this node does not checkpoint containers"),
        ),
        Route(("GET", "PUT"), "/debug/{path:.*}", debug),
    )


def install(application: web.Application, routes: Iterable[Route]) -> None:
    """Put the rows into an application's router."""
    for route in routes:
        for method in route.methods:
            application.router.add_route(method, route.path, route.serve)


def refuse(status: int, sentence: str) -> Endpoint:
    """An endpoint that only says why it does nothing."""

    async def serve(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=sentence)

    return serve


def pod_list(pods: Sequence[Json]) -> bytes:
    """A ``v1.PodList`` of these pods."""
    body = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": list(pods)}
    return orjson.dumps(body)
