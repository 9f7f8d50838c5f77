"""The routes of the kubelet port as the table of the documentation shows them.

Feeds the test that holds the page to the code, and the tests of every cell.
"""

from __future__ import annotations

import sys

from aiohttp import web

from vk_provider.server.access import verb_and_subresources
from vk_provider.server.routes import METRICS_PATHS, Route, Served, kubelet_routes

BEGIN, END = "<!-- routes: begin -->", "<!-- routes: end -->"
HEAD = (
    "| route | method | authn | authz: verb and subresource of `nodes` | limits | answers |",
    "|---|---|---|---|---|---|",
)
STREAMS = ("exec", "attach", "portForward")


async def _nothing(_request: web.Request) -> web.StreamResponse:
    return web.Response()


def routes() -> tuple[Route, ...]:
    """The rows, with endpoints that do nothing."""
    metrics = dict.fromkeys(METRICS_PATHS, _nothing)
    return kubelet_routes(
        Served(
            health=_nothing,
            pods=_nothing,
            running_pods=_nothing,
            container_logs=_nothing,
            exec=_nothing,
            attach=_nothing,
            port_forward=_nothing,
            configz=_nothing,
            metrics=metrics,
        )
    )


def cells() -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Each method and route: what is asked about it, in order."""
    return [
        (method, route.path, *verb_and_subresources(method, route.path))
        for route in routes()
        for method in route.methods
    ]


def table() -> list[str]:
    """The table of the page."""
    rows = [
        f"| `{route.path}` | {method} | certificate or token | {_needs(method, route.path)} "
        f"| {_limits(route.path)} | {route.about} |"
        for route in routes()
        for method in route.methods
    ]
    return [BEGIN, *HEAD, *rows, END]


def _limits(path: str) -> str:
    if path.split("/")[1] in STREAMS:
        return "common, and those of streams"
    return "common"


def _needs(method: str, path: str) -> str:
    verb, subresources = verb_and_subresources(method, path)
    return " or ".join(f"`{verb} {subresource}`" for subresource in subresources)


if __name__ == "__main__":
    sys.stdout.write("\n".join([*table(), ""]))
