"""The kubelet's HTTPS server of one virtual node, put together.

Every request passes the bounds, then the authorizer, then the table of routes.
Fed by the lookup (pods), the authorizer (rights) and the serving TLS; feeds the API server and
whoever it lets in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from aiohttp import web
from prometheus_client import CollectorRegistry

from vk_provider.pods.types import Json
from vk_provider.server.attach import attach_endpoint
from vk_provider.server.auth import Authorizer
from vk_provider.server.checks import Check, check_endpoint, ping
from vk_provider.server.configz import configz_endpoint
from vk_provider.server.exec import exec_endpoint
from vk_provider.server.limits import Endpoint, Limits, Middleware, bounded
from vk_provider.server.listener import Listener
from vk_provider.server.logs import LogTimes, log_endpoint
from vk_provider.server.lookup import PodLookup
from vk_provider.server.portforward import port_forward_endpoint
from vk_provider.server.remote_command import StreamTimes
from vk_provider.server.routes import Served, install, kubelet_routes, pod_list
from vk_provider.server.stats import (
    Measured,
    cadvisor_endpoint,
    own_metrics_endpoint,
    probes_endpoint,
    resource_endpoint,
    slis_endpoint,
    summary_endpoint,
)
from vk_provider.server.streaming import Streams
from vk_provider.server.tls import ServingTLS
from vk_provider.server.usage import UsageReader, UsageTimes

CLIENT_GONE = 499
"""What is observed when a client left before the end; no client ever sees it."""

Observe = Callable[[str, int], None]
"""Told the route and the status of every answer, for a metric."""


@dataclass(frozen=True, slots=True)
class KubeletOptions:
    """Where the server listens, and how patient it is. With one address as the host, port 0 lets
    the system pick one; an empty host is every address, of IPv4 and IPv6.

    ``checks`` answer ``/healthz`` beside ``ping``; a kubelet's is called ``syncloop``.
    """

    host: str = ""
    port: int = 10250
    limits: Limits = field(default_factory=Limits)
    log_times: LogTimes = field(default_factory=LogTimes)
    stream_times: StreamTimes = field(default_factory=StreamTimes)
    usage_times: UsageTimes = field(default_factory=UsageTimes)
    refresh_seconds: float = 10.0
    checks: Mapping[str, Check] = field(default_factory=dict)
    observe: Observe | None = None
    node_name: str = ""
    registry: CollectorRegistry | None = None


def kubelet_application(
    lookup: PodLookup, authorizer: Authorizer, options: KubeletOptions, streams: Streams
) -> web.Application:
    """The application behind the kubelet port."""
    middlewares = [bounded(options.limits), authorizer.middleware()]
    if options.observe is not None:
        middlewares.insert(0, _observed(options.observe))
    application = web.Application(
        middlewares=middlewares, client_max_size=options.limits.body_bytes
    )
    checks = {"ping": ping, "log": ping, "syncloop": ping, **options.checks}
    reader = UsageReader(lookup, options.usage_times)
    measured = Measured(options.node_name, reader, options.registry, checks)
    served = Served(
        health=check_endpoint("healthz", checks),
        pods=_pods_endpoint(lookup.pods),
        running_pods=_pods_endpoint(lookup.running_pods),
        container_logs=log_endpoint(lookup, options.log_times),
        exec=exec_endpoint(streams),
        attach=attach_endpoint(streams),
        port_forward=port_forward_endpoint(streams),
        configz=configz_endpoint(options.stream_times.idle_seconds),
        metrics={
            "/stats/summary": summary_endpoint(measured),
            "/stats/summary/": summary_endpoint(measured),
            "/metrics": own_metrics_endpoint(measured),
            "/metrics/resource": resource_endpoint(measured),
            "/metrics/cadvisor": cadvisor_endpoint(measured),
            "/metrics/probes": probes_endpoint(),
            "/metrics/slis": slis_endpoint(measured),
        },
    )
    install(application, kubelet_routes(served))
    application.on_response_prepare.append(_anonymous)
    return application


def _pods_endpoint(pods: Callable[[], Sequence[Json]]) -> Endpoint:
    async def serve(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=pod_list(pods()), content_type="application/json")

    return serve


def _observed(observe: Observe) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Endpoint) -> web.StreamResponse:
        # The pattern, not the path: a label must not have as many values as there are pods.
        resource = request.match_info.route.resource
        route = "other" if resource is None else resource.canonical
        try:
            response = await handler(request)
        except web.HTTPException as refusal:
            observe(route, refusal.status)
            raise
        except asyncio.CancelledError:
            observe(route, CLIENT_GONE)
            raise
        observe(route, response.status)
        return response

    return middleware


async def _anonymous(_request: web.Request, response: web.StreamResponse) -> None:
    """Tell strangers no versions."""
    response.headers.pop("Server", None)


class KubeletServer:
    """One node's kubelet port. Used as an async context manager, or by ``start`` and ``close``."""

    def __init__(
        self, lookup: PodLookup, authorizer: Authorizer, tls: ServingTLS, options: KubeletOptions
    ) -> None:
        self._tls = tls
        self._options = options
        self._streams = Streams(lookup, options.stream_times)
        application = kubelet_application(lookup, authorizer, options, self._streams)
        self._listener = Listener(
            application, options.host, options.port, options.limits, tls.context
        )
        self._refreshing: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Listen and keep the certificate fresh; answers the port for ``daemonEndpoints``.

        Raises:
            OSError: if the port is taken.
        """
        port = await self._listener.start()
        self._refreshing = asyncio.create_task(
            self._tls.run(self._options.refresh_seconds), name="kubelet-tls"
        )
        return port

    async def close(self) -> None:
        """Stop serving; running streams end, and say so. Idempotent."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait({self._refreshing})
            self._refreshing = None
        await self._streams.close(self._options.limits.close_seconds)
        await self._listener.close()

    async def __aenter__(self) -> KubeletServer:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
