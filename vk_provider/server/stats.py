"""``/stats/summary`` and ``/metrics…``: what metrics-server, Prometheus and dashboards scrape.

Fed by :mod:`.usage` and the lookup; the texts come from ``pods.stats`` and ``pods.stats_metrics``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import orjson
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from vk_provider.pods.stats import summary
from vk_provider.pods.stats_metrics import (
    CONTENT_TYPE,
    Family,
    cadvisor_families,
    exposition,
    resource_families,
)
from vk_provider.pods.types import Json
from vk_provider.server.checks import Check
from vk_provider.server.limits import Endpoint
from vk_provider.server.usage import UsageReader

_STATUSES = ("containerStatuses", "initContainerStatuses")


@dataclass(frozen=True, slots=True)
class Measured:
    """What the endpoints here show."""

    node_name: str
    reader: UsageReader
    registry: CollectorRegistry | None = None
    checks: Mapping[str, Check] = field(default_factory=dict)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))


def summary_endpoint(measured: Measured) -> Endpoint:
    """``/stats/summary``."""

    async def serve(request: web.Request) -> web.StreamResponse:
        look, pods = await measured.reader.look(), measured.reader.running_pods()
        only = request.query.get("only_cpu_and_memory") == "true"
        body = summary(
            measured.node_name, measured.started_at, look.usage, pods, only_cpu_and_memory=only
        )
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    return serve


def resource_endpoint(measured: Measured) -> Endpoint:
    """``/metrics/resource``."""

    async def serve(_request: web.Request) -> web.StreamResponse:
        look, pods = await measured.reader.look(), measured.reader.running_pods()
        return _text(resource_families(look.usage, pods, error=look.error))

    return serve


def cadvisor_endpoint(measured: Measured) -> Endpoint:
    """``/metrics/cadvisor``."""

    async def serve(_request: web.Request) -> web.StreamResponse:
        look, pods = await measured.reader.look(), measured.reader.running_pods()
        return _text(cadvisor_families(look.usage, pods))

    return serve


def probes_endpoint() -> Endpoint:
    """``/metrics/probes``: this node runs none, and a 404 would show it as down."""

    async def serve(_request: web.Request) -> web.StreamResponse:
        return _text([])

    return serve


def slis_endpoint(measured: Measured) -> Endpoint:
    """``/metrics/slis``: the health checks as metrics."""

    async def serve(_request: web.Request) -> web.StreamResponse:
        health = Family("kubernetes_healthcheck", "gauge", "1 if the check passes")
        for name, check in measured.checks.items():
            health.add({"name": name, "type": "healthz"}, int(check() is None), None)
        return _text([health])

    return serve


def own_metrics_endpoint(measured: Measured) -> Endpoint:
    """``/metrics``: a few of a kubelet's own series, then those of the product."""

    async def serve(_request: web.Request) -> web.StreamResponse:
        pods = measured.reader.running_pods()
        text = exposition(_kubelet_families(measured.node_name, pods)).encode()
        own = b"" if measured.registry is None else generate_latest(measured.registry)
        return web.Response(body=text + own, headers={"Content-Type": CONTENT_TYPE})

    return serve


def _kubelet_families(node_name: str, pods: Iterable[Json]) -> list[Family]:
    named = Family("kubelet_node_name", "gauge", "The node's name; the value is always 1")
    named.add({"node": node_name}, 1, None)
    running = Family("kubelet_running_pods", "gauge", "Pods that have a running instance")
    containers = Family("kubelet_running_containers", "gauge", "Containers by their state")
    states: Counter[str] = Counter()
    count = 0
    for pod in pods:
        count += 1
        status = pod.get("status") or {}
        for kind in _STATUSES:
            states.update(_state(entry) for entry in status.get(kind) or ())
    running.add({}, count, None)
    for state, number in sorted(states.items()):
        containers.add({"container_state": state}, number, None)
    return [named, running, containers]


def _state(status: Json) -> str:
    """In a kubelet's words."""
    state = status.get("state") or {}
    if "running" in state:
        return "running"
    return "exited" if "terminated" in state else "created"


def _text(families: Iterable[Family]) -> web.Response:
    return web.Response(body=exposition(families).encode(), headers={"Content-Type": CONTENT_TYPE})
