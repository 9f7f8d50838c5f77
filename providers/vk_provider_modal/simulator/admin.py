"""The orders of the back door that are this simulator's: kill sandboxes, write logs, set stock.

It has a port of its own, as the service speaks gRPC on the other.
Fed by tests, demos and people with curl; changes ``model``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from vk_provider.testing.simulator.back_door import Route, find
from vk_provider.testing.simulator.orders import BadRequestError
from vk_provider_modal.simulator.model import STATUSES, End, SimulatedSandbox
from vk_provider_modal.simulator.state import State


def kill(state: State, request: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/sandboxes/{id}/kill`` ``{"how": "INTERNAL_FAILURE", "exitCode", "message"}``;
    ``how`` is a status of the service's or ``vanish``, ``id`` may be a Kubernetes pod UID."""
    now = state.clock.now()
    sandbox = _living(state, request.match_info["id"])
    how = str(body.get("how", "INTERNAL_FAILURE")).upper()
    if how == "VANISH":
        state.model.vanish(sandbox, now)
    elif how in STATUSES[1:]:
        message = str(body.get("message", ""))
        code = int(body.get("exitCode", 0))
        state.model.finish(sandbox, End(STATUSES.index(how), now, code, message))
    else:
        raise BadRequestError(f"how {how!r} is unknown; known: vanish, {', '.join(STATUSES[1:])}")
    return describe(sandbox)


def write_log(state: State, request: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/sandboxes/{id}/logs`` ``{"line": "...", "source": "stdout"}``."""
    sandbox = _living(state, request.match_info["id"])
    line, source = str(body["line"]), str(body.get("source", "stdout"))
    sandbox.said.append((state.clock.now(), source, f"{line}\n"))
    return {"line": line, "source": source}


def _living(state: State, key: str) -> SimulatedSandbox:
    return find(state.model.living.values(), key, "sandbox")


def describe(sandbox: SimulatedSandbox) -> dict[str, Any]:
    """One sandbox with what no client can see."""
    end, owner = sandbox.end, sandbox.owner
    return {
        "id": sandbox.id,
        "name": sandbox.wish.name,
        "status": "RUNNING" if end is None else STATUSES[end.status],
        "pod_uid": owner.pod_uid or None,
        "node": owner.node_name or None,
        "cluster": owner.cluster_id or None,
        "gpu": ":".join(map(str, sandbox.wish.gpu)),
        "created_at": sandbox.created_at,
        "placed_at": sandbox.placed_at,
        "ended_at": None if end is None else end.at,
    }


def list_sandboxes(state: State, *_: Any) -> Any:
    """``GET /_sim/sandboxes``: every sandbox that ever was, without lag or paging."""
    state.model.settle(state.clock.now())
    return {"sandboxes": [describe(each) for each in state.model.sandboxes.values()]}


def add_sandbox(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/sandboxes``: one that somebody else rents in the same workspace."""
    settings = dict(body)
    return {"id": state.add_foreign(settings.pop("name", "somebody-elses"), **settings).id}


def set_stock(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``PUT /_sim/stock`` ``{gpu, free}``; ``free`` null: unlimited again."""
    kind, free = str(body["gpu"]), body.get("free")
    if free is None:
        state.model.stock.pop(kind, None)
    else:
        state.model.stock[kind] = int(free)
    return dict(state.model.stock)


ROUTES: tuple[Route, ...] = (
    ("POST", "/sandboxes/{id}/kill", kill),
    ("POST", "/sandboxes/{id}/logs", write_log),
    ("GET", "/sandboxes", list_sandboxes),
    ("POST", "/sandboxes", add_sandbox),
    ("PUT", "/stock", set_stock),
)
"""What this simulator can be told besides what all can."""
