"""Named health checks and their answer, in the words of Kubernetes' ``/livez`` and ``/readyz``.

Fed by callables that ``app`` gives; feeds the health endpoints of both ports.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from aiohttp import web

from vk_provider.log import scrub
from vk_provider.server.limits import Endpoint


class Check(Protocol):
    """One question about ourselves."""

    def __call__(self) -> str | None:
        """None if all is well, otherwise why not. Answers from memory at once."""


def ping() -> str | None:
    """That the event loop answers at all."""
    return None


def render_checks(
    name: str, checks: Mapping[str, Check], excluded: Collection[str] = (), verbose: bool = False
) -> tuple[int, str]:
    """HTTP status and body: ``ok``, or one line per check when asked for or when one failed."""
    lines, failed = [], False
    for label, check in checks.items():
        reason = None if label in excluded else check()
        failed = failed or reason is not None
        lines.append(_line(label, reason, label in excluded))
    lines += [
        f"warn: some health checks cannot be excluded: no matches for {label!r}"
        for label in sorted(set(excluded) - set(checks))
    ]
    if failed:
        return 500, "\n".join([*lines, f"{name} check failed", ""])
    return 200, "\n".join([*lines, f"{name} check passed", ""]) if verbose else "ok"


def _line(label: str, reason: str | None, excluded: bool) -> str:
    if excluded:
        return f"[+]{label} excluded: ok"
    return f"[+]{label} ok" if reason is None else f"[-]{label} failed: {scrub(reason)}"


def check_endpoint(name: str, checks: Mapping[str, Check]) -> Endpoint:
    """The endpoint of a group of checks; with ``{check}`` in its path, of a single one."""

    async def serve(request: web.Request) -> web.StreamResponse:
        label = request.match_info.get("check")
        if label is not None and label not in checks:
            return web.Response(status=404, text=f"there is no check {label!r} in {name}\n")
        asked = checks if label is None else {label: checks[label]}
        excluded = request.query.getall("exclude", [])
        status, body = render_checks(name, asked, excluded, "verbose" in request.query)
        headers = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}
        return web.Response(status=status, text=body, headers=headers)

    return serve
