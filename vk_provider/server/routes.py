"""Every route of the kubelet API in one table: what is served, and what is refused with a sentence.

To add a part of the API, replace its row. Fed by ``app``; feeds aiohttp's router.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson
from aiohttp import web

from vk_provider.pods.types import Json
from vk_provider.server.limits import Endpoint


@dataclass(frozen=True, slots=True)
class Route:
    """One row: any of these methods on this path is answered by that endpoint. Another method
    gets 405 and the methods that are allowed. ``about`` is for the documentation."""

    methods: tuple[str, ...]
    path: str
    serve: Endpoint
    about: str


@dataclass(frozen=True, slots=True)
class Served:
    """The endpoints that this server has; ``metrics`` by the paths of METRICS_PATHS."""

    health: Endpoint
    pods: Endpoint
    running_pods: Endpoint
    container_logs: Endpoint
    exec: Endpoint
    attach: Endpoint
    port_forward: Endpoint
    configz: Endpoint
    metrics: Mapping[str, Endpoint]


METRICS_PATHS = {
    "/stats/summary": "Summary API; `only_cpu_and_memory=true` reduces it",
    "/stats/summary/": "the same",
    "/metrics": "a kubelet's own series, and those of vk-provider",
    "/metrics/resource": "what metrics-server reads",
    "/metrics/cadvisor": "containers and GPUs under cAdvisor's names",
    "/metrics/probes": "nothing, with 200",
    "/metrics/slis": "the health checks as metrics",
}

_GET = ("GET",)
_STREAM = ("GET", "POST")
_DEBUG = "Debug endpoints are disabled."
_NO_NODE_LOGS = "logs: a virtual node has no system logs; see those of vk-provider"
_NO_CHECKPOINTS = "checkpoint: this node does not checkpoint containers"


def kubelet_routes(served: Served) -> tuple[Route, ...]:
    """The table."""
    return (*_reading(served), *_streaming(served), *_refused())


def _reading(served: Served) -> Iterator[Route]:
    yield Route(_GET, "/healthz", served.health, "`ok`, or which check failed")
    yield Route(_GET, "/healthz/{check}", served.health, "one check")
    yield Route(_GET, "/pods", served.pods, "the pods bound to the node")
    yield Route(_GET, "/runningpods/", served.running_pods, "those that have an instance")
    yield Route(_GET, "/runningpods", served.running_pods, "the same")
    logs = "/containerLogs/{namespace}/{pod}/{container}"
    yield Route(_GET, logs, served.container_logs, "a container's log")
    yield Route(_GET, "/configz", served.configz, "the server's settings")
    for path, about in METRICS_PATHS.items():
        methods = _STREAM if path.startswith("/stats/") else _GET
        yield Route(methods, path, served.metrics[path], about)


def _streaming(served: Served) -> Iterator[Route]:
    for uid in ("", "/{uid}"):
        path, about = f"/exec/{{namespace}}/{{pod}}{uid}/{{container}}", "runs a command"
        yield Route(_STREAM, path, served.exec, about)
        path, about = f"/attach/{{namespace}}/{{pod}}{uid}/{{container}}", "a container's streams"
        yield Route(_STREAM, path, served.attach, about)
        path, about = f"/portForward/{{namespace}}/{{pod}}{uid}", "connections to its ports"
        yield Route(_STREAM, path, served.port_forward, about)


def _refused() -> Iterator[Route]:
    debug = refuse(405, _DEBUG)
    for uid in ("", "/{uid}"):
        path = f"/run/{{namespace}}/{{pod}}{uid}/{{container}}"
        yield Route(("POST",), path, debug, "405: nothing of Kubernetes asks for it")
    node_logs = refuse(501, _NO_NODE_LOGS)
    yield Route(_GET, "/logs/{path:.*}", node_logs, "501: there are no system logs")
    checkpoint = "/checkpoint/{namespace}/{pod}/{container}"
    yield Route(("POST",), checkpoint, refuse(404, _NO_CHECKPOINTS), "404: no checkpoints")
    yield Route(("GET", "PUT"), "/debug/{path:.*}", debug, "405: disabled")


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
