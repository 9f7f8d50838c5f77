"""The simulator's back door, ``/_sim``: script faults, kill sandboxes, move the clock, read bills.

Plain HTTP with JSON on a port of its own, without authentication: it belongs on loopback. A wrong
request is a 400 with a sentence. Fed by tests, demos and people with curl; changes ``faults``,
``model`` and ``clock``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from aiohttp import web

from vk_provider_modal.simulator.faults import KINDS, Fault, UnknownKindError
from vk_provider_modal.simulator.model import (
    STATUSES,
    Behaviour,
    End,
    RefusalError,
    Rule,
    SimulatedSandbox,
)
from vk_provider_modal.simulator.state import State

Work = Callable[[State, web.Request, Mapping[str, Any]], Any]


class BadRequestError(ValueError):
    """The back door was asked for something that it doesn't know."""


def make_app(state: State) -> web.Application:
    """The back door, ready for a runner."""
    app = web.Application()
    for method, path, work in ROUTES:
        app.router.add_route(method, f"/_sim{path}", _served(state, work))
    for path in ("/", "/_sim"):
        app.router.add_get(path, _index)
    return app


async def _index(_: web.Request) -> web.Response:
    """What there is to ask, from the first lines of what answers."""
    lines = {(work.__doc__ or "").partition("\n")[0].replace("``", ""): None for *_, work in ROUTES}
    return web.Response(text="\n".join(("The back door of the simulator:", "", *lines, "")))


def _served(state: State, work: Work) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def serve(request: web.Request) -> web.Response:
        try:
            text = await request.text()
            body = json.loads(text) if text else {}
            if not isinstance(body, dict):
                raise BadRequestError("the body must be a JSON object")
            return web.json_response(camel(work(state, request, body)))
        except (ValueError, KeyError, TypeError) as error:
            return web.json_response({"error": str(error)}, status=400)
        except RefusalError as refusal:
            return web.json_response({"error": refusal.detail}, status=404)

    return serve


def snake(body: Mapping[str, Any]) -> dict[str, Any]:
    """``holdMs`` as ``hold_ms``: the back door speaks camelCase."""
    return {re.sub(r"[A-Z]", lambda m: f"_{m[0].lower()}", key): v for key, v in body.items()}


def camel(value: Any) -> Any:
    """The way back: every key of an answer in camelCase."""
    if isinstance(value, Mapping):
        return {re.sub(r"_([a-z])", lambda m: m[1].upper(), k): camel(v) for k, v in value.items()}
    return [camel(entry) for entry in value] if isinstance(value, list | tuple) else value


def _known(
    body: Mapping[str, Any], kind: type[Fault] | type[Behaviour], *more: str
) -> dict[str, Any]:
    settings = snake(body)
    allowed = {field.name for field in fields(kind)} | set(more)
    unknown = sorted(set(settings) - allowed)
    if unknown:
        raise BadRequestError(f"unknown keys {unknown}; known: {sorted(allowed)}")
    return settings


def add_fault(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/faults`` ``{kind, operation, count, probability, gpu, ...}``."""
    settings = _known(body, Fault, "seed")
    kind = settings.pop("kind", None)
    if kind is None:
        raise UnknownKindError(f"kind is missing; known: {', '.join(sorted(KINDS))}")
    if "latency_ms" in settings:
        low, high = settings["latency_ms"]
        settings["latency_ms"] = (float(low), float(high))
    return asdict(state.faults.add(str(kind), **settings))


def list_faults(state: State, *_: Any) -> Any:
    """``GET /_sim/faults``: what is scripted and how often it fired, and every kind there is."""
    return {"faults": [asdict(fault) for fault in state.faults.script], "kinds": dict(KINDS)}


def remove_faults(state: State, request: web.Request, _: Mapping[str, Any]) -> Any:
    """``DELETE /_sim/faults`` or ``/_sim/faults/{id}``."""
    state.faults.remove(request.match_info.get("id"))
    return list_faults(state)


def kill(state: State, request: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/sandboxes/{id}/kill`` ``{"how": "INTERNAL_FAILURE", "exitCode", "message"}``;
    ``how`` is a status of the service's or ``vanish``, ``id`` may be a Kubernetes pod UID."""
    now = state.clock.now()
    sandbox = find(state, request.match_info["id"])
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
    sandbox = find(state, request.match_info["id"])
    line, source = str(body["line"]), str(body.get("source", "stdout"))
    sandbox.said.append((state.clock.now(), source, f"{line}\n"))
    return {"line": line, "source": source}


def find(state: State, key: str) -> SimulatedSandbox:
    """The living sandbox of this id or Kubernetes pod UID."""
    for sandbox in state.model.living.values():
        if key in (sandbox.id, sandbox.wish.tags.get("vk.uid")):
            return sandbox
    raise RefusalError("NOT_FOUND", f"no living sandbox has the id or the Kubernetes UID {key!r}")


def describe(sandbox: SimulatedSandbox) -> dict[str, Any]:
    """One sandbox with what no client can see."""
    end, tags = sandbox.end, sandbox.wish.tags
    return {
        "id": sandbox.id,
        "name": sandbox.wish.name,
        "status": "RUNNING" if end is None else STATUSES[end.status],
        "pod_uid": tags.get("vk.uid"),
        "node": tags.get("vk.node"),
        "cluster": tags.get("vk.cluster"),
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


def add_behaviour(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/behaviours`` ``{match, queueSeconds, runSeconds, exitCode, startFailure, ...}``.

    An empty ``match`` is the default for all sandboxes made from now on; the newest rule wins.
    """
    settings = _known(body, Behaviour, "match")
    match = settings.pop("match", "")
    if "log_lines" in settings:
        settings["log_lines"] = tuple(settings["log_lines"])
    behaviour = replace(state.model.default, **settings)
    if match:
        state.model.rules.insert(0, Rule(match, behaviour))
    else:
        state.model.default = behaviour
    return asdict(behaviour)


def set_stock(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``PUT /_sim/stock`` ``{gpu, free}``; ``free`` null: unlimited again."""
    kind, free = str(body["gpu"]), body.get("free")
    if free is None:
        state.model.stock.pop(kind, None)
    else:
        state.model.stock[kind] = int(free)
    return dict(state.model.stock)


def advance(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/clock/advance`` ``{seconds}``."""
    state.clock.advance(float(body["seconds"]))
    return show_clock(state)


def show_clock(state: State, *_: Any) -> Any:
    """``GET /_sim/clock``; time passes by itself at ``speed``."""
    return {"now": state.clock.now(), "speed": state.clock.speed}


def show_ledger(state: State, *_: Any) -> Any:
    """``GET /_sim/ledger``: every charge, the open ones, and pods billed twice at once."""
    now = state.clock.now()
    state.model.settle(now)
    return state.model.ledger.report(now)


def show_requests(state: State, request: web.Request, _: Mapping[str, Any]) -> Any:
    """``GET /_sim/requests?after=N``: every call, when it came and whether it was answered."""
    after = int(request.query.get("after", "-1"))
    return {"requests": [asdict(each) for each in state.requests if each.number > after]}


ROUTES: tuple[tuple[str, str, Work], ...] = (
    ("POST", "/faults", add_fault),
    ("GET", "/faults", list_faults),
    ("DELETE", "/faults", remove_faults),
    ("DELETE", "/faults/{id}", remove_faults),
    ("POST", "/sandboxes/{id}/kill", kill),
    ("POST", "/sandboxes/{id}/logs", write_log),
    ("GET", "/sandboxes", list_sandboxes),
    ("POST", "/sandboxes", add_sandbox),
    ("POST", "/behaviours", add_behaviour),
    ("PUT", "/stock", set_stock),
    ("POST", "/clock/advance", advance),
    ("GET", "/clock", show_clock),
    ("GET", "/ledger", show_ledger),
    ("GET", "/requests", show_requests),
)
