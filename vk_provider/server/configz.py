"""``/configz``: the part of a KubeletConfiguration that is true of this server.

Fed by ``app``; for people and tools that compare nodes.
"""

from __future__ import annotations

import orjson
from aiohttp import web

from vk_provider.server.limits import Endpoint

_HOUR, _MINUTE = 3600, 60


def configz_endpoint(idle_seconds: float) -> Endpoint:
    """The endpoint."""
    body = orjson.dumps({"kubeletconfig": configuration(idle_seconds)})

    async def serve(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type="application/json")

    return serve


def configuration(idle_seconds: float) -> dict[str, object]:
    """The fields that are facts here; all others are absent."""
    return {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "enableServer": True,
        "enableDebuggingHandlers": False,
        "authentication": {
            "x509": {},
            "webhook": {"enabled": True, "cacheTTL": "2m0s"},
            "anonymous": {"enabled": False},
        },
        "authorization": {
            "mode": "Webhook",
            "webhook": {"cacheAuthorizedTTL": "5m0s", "cacheUnauthorizedTTL": "30s"},
        },
        "streamingConnectionIdleTimeout": go_duration(idle_seconds),
        "readOnlyPort": 0,
    }


def go_duration(seconds: float) -> str:
    """``4h0m0s``, as Go writes it."""
    whole = int(seconds)
    hours, minutes, rest = whole // _HOUR, whole % _HOUR // _MINUTE, whole % _MINUTE
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
