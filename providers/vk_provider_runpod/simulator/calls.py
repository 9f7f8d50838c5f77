"""What every endpoint of the simulator needs of a call: the state, the body, a problem answer.

Fed by aiohttp requests; used by ``app``, ``pods_api``, ``shop_api`` and ``admin``.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from vk_provider_runpod.simulator import views
from vk_provider_runpod.simulator.faults import Fault
from vk_provider_runpod.simulator.placing import RefusalError
from vk_provider_runpod.simulator.state import RequestRecord, State

STATE = web.AppKey("state", State)
_TITLES = {
    400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden",
    404: "Not Found", 405: "Method Not Allowed", 409: "Conflict", 422: "Unprocessable Entity",
    429: "Too Many Requests",
}  # fmt: skip


@dataclass(slots=True)
class Call:
    """The call that is being served: its record, and the fault it meets."""

    record: RequestRecord
    fault: Fault | None = None

    @property
    def meets(self) -> str:
        """The kind of the fault, empty without one."""
        return self.fault.kind if self.fault else ""


CALL: ContextVar[Call] = ContextVar("call")
"""Each request is served in a task of its own, so this is never another's."""


def state_of(request: web.Request) -> State:
    """The simulator that serves this call."""
    return request.app[STATE]


async def read_json(request: web.Request) -> Any:
    """The body as JSON, whatever it holds; 400 where it is none."""
    try:
        return json.loads(await request.read())
    except (UnicodeDecodeError, ValueError):
        raise RefusalError(400, "request body is not valid JSON") from None


def problem(status: int, detail: str, errors: tuple[str, ...] = ()) -> web.Response:
    """An error answer as the service words it."""
    body = views.problem(status, _TITLES.get(status, "Error"), detail, errors)
    text = json.dumps(body)
    return web.Response(status=status, text=text, content_type="application/problem+json")
