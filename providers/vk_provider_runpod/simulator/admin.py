"""The simulator's back door, ``/_sim``: script faults, kill pods, move the clock, read the bill.

No authentication: it belongs on loopback. Answers are JSON; a wrong request is a 400 with a
sentence. Fed by tests, demos and people with curl; changes ``faults``, ``model`` and ``clock``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from aiohttp import web

from vk_provider_runpod.simulator.clock import rfc3339
from vk_provider_runpod.simulator.faults import KINDS, Fault, UnknownKindError
from vk_provider_runpod.simulator.model import Behaviour, Rule, SimulatedPod
from vk_provider_runpod.simulator.placing import RefusalError
from vk_provider_runpod.simulator.state import State

Work = Callable[[State, web.Request, Mapping[str, Any]], Any]
HOW = ("vanish", "exited", "error", "status", "hide-fields", "hide-runtime", "restart", "lock")
"""What ``POST /_sim/pods/{id}/kill`` can do to a pod, as ``{"how": ...}``."""


class BadRequestError(ValueError):
    """The back door was asked for something that it doesn't know."""


def add_routes(app: web.Application, state: State) -> None:
    """Hang the back door into the application."""
    for method, path, work in ROUTES:
        app.router.add_route(method, f"/_sim{path}", _served(state, work))
    for path in ("/", "/_sim"):
        app.router.add_get(path, _index)


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
            answer = camel(work(state, request, body))
            if state.shells is not None:
                state.shells.sweep()
            return web.json_response(answer)
        except (ValueError, KeyError, TypeError) as error:
            return web.json_response({"error": str(error)}, status=400)
        except RefusalError as refusal:
            return web.json_response({"error": refusal.detail}, status=refusal.status)

    return serve


def snake(body: Mapping[str, Any]) -> dict[str, Any]:
    """``holdMs`` as ``hold_ms``: the back door speaks camelCase like the service."""
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
    """``POST /_sim/faults`` ``{kind, operation, count, probability, gpu, dataCenter, ...}``."""
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


def kill_pod(state: State, request: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/pods/{id}/kill`` ``{"how": "vanish"}``; ``id`` may be a Kubernetes pod UID."""
    now = state.clock.now()
    pod = _find(state, request.match_info["id"])
    how = body.get("how", "vanish")
    if how not in HOW:
        raise BadRequestError(f"how {how!r} is unknown; known: {', '.join(HOW)}")
    if how == "vanish":
        state.model.vanish(pod.id, now)
    elif how in ("exited", "error"):
        state.model.end(pod, how.upper(), now)
    elif how == "restart":
        # The container crashed and was started again: same image, so no pull.
        pod.behaviour, pod.started_at = replace(pod.behaviour, pull_seconds=0.0), now
    elif how == "lock":
        pod.locked = True
    else:
        _deface(pod, how, body)
    return describe(pod, now)


def write_log(state: State, request: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/pods/{id}/logs`` ``{"line": "...", "source": "container"}``."""
    pod = _find(state, request.match_info["id"])
    line, source = str(body["line"]), str(body.get("source", "container"))
    pod.said.append((state.clock.now(), source, line))
    return {"line": line, "source": source}


def _deface(pod: SimulatedPod, how: str, body: Mapping[str, Any]) -> None:
    if how == "status":
        pod.status_override = body.get("status")
    elif how == "hide-fields":
        pod.hidden_fields = tuple(body.get("fields", ()))
    else:
        pod.runtime_hidden = bool(body.get("hidden", True))


def _find(state: State, key: str) -> SimulatedPod:
    for pod in state.model.pods.values():
        matches = key in (pod.id, pod.env.get("VK_PROVIDER_POD_UID"))
        if matches and pod.deleted_at is None:
            return pod
    raise RefusalError(404, f"no living pod has the id or the Kubernetes UID {key!r}")


def describe(pod: SimulatedPod, now: float) -> dict[str, Any]:
    """One pod with what no client can see."""
    return {
        "id": pod.id,
        "name": pod.body["name"],
        "status": pod.status(now),
        "uptime": pod.uptime(now),
        "podUid": pod.env.get("VK_PROVIDER_POD_UID"),
        "node": pod.env.get("VK_PROVIDER_NODE_NAME"),
        "cluster": pod.env.get("VK_PROVIDER_CLUSTER_ID"),
        "gpu": pod.body.get("gpu"),
        "dataCenter": pod.data_center,
        "cost": pod.cost,
        "createdAt": rfc3339(pod.created_at),
        "deletedAt": None if pod.deleted_at is None else rfc3339(pod.deleted_at),
    }


def list_pods(state: State, *_: Any) -> Any:
    """``GET /_sim/pods``: every pod that ever was, without lag or paging."""
    now = state.clock.now()
    state.model.settle(now)
    return {"pods": [describe(pod, now) for pod in state.model.pods.values()]}


def add_pod(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/pods``: a pod that somebody else rents in the same account."""
    settings = dict(body)
    created = state.add_foreign(settings.pop("name", "somebody-elses"), **settings)
    return {"id": created}


def add_behaviour(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/behaviours`` ``{match, pullSeconds, runSeconds, pullError, logLines, ...}``.

    An empty ``match`` is the default for all pods made from now on; the newest rule wins.
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


def clear_behaviours(state: State, *_: Any) -> Any:
    """``DELETE /_sim/behaviours``."""
    state.model.rules.clear()
    return {}


def set_stock(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``PUT /_sim/stock`` ``{gpu, dataCenter, free}``; ``free`` null: unlimited again."""
    kind, centre = body.get("gpu") or body["cpu"], body.get("dataCenter", "*")
    free = body.get("free")
    if free is None:
        state.model.catalogue.limits.pop((kind, centre), None)
    else:
        state.model.catalogue.limits[(kind, centre)] = int(free)
    return {f"{k} in {c}": n for (k, c), n in state.model.catalogue.limits.items()}


def advance(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/clock/advance`` ``{seconds}``."""
    state.clock.advance(float(body["seconds"]))
    return show_clock(state)


def show_clock(state: State, *_: Any) -> Any:
    """``GET /_sim/clock``; time passes by itself at ``speed``."""
    now = state.clock.now()
    return {"now": now, "text": rfc3339(now), "speed": state.clock.speed}


def show_ledger(state: State, *_: Any) -> Any:
    """``GET /_sim/ledger``: every charge, the open ones, and pods billed twice at once."""
    now = state.clock.now()
    state.model.settle(now)
    return state.model.ledger.report(now)


def show_requests(state: State, request: web.Request, _: Mapping[str, Any]) -> Any:
    """``GET /_sim/requests?after=N``: every call, when it came and whether it was answered."""
    after = int(request.query.get("after", "-1"))
    return {"requests": [asdict(r) for r in state.requests if r.number > after]}


def set_options(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``PATCH /_sim/options`` ``{listLagSeconds, createLatencyMs, dropLogsAfter, ...}``."""
    settings = snake(body)
    if "drop_logs_after" in settings:
        state.drop_logs_after = int(settings.pop("drop_logs_after"))
    if "create_latency_ms" in settings:
        low, high = settings["create_latency_ms"]
        settings["create_latency_ms"] = (float(low), float(high))
    state.options = replace(state.options, **settings)
    state.model.list_lag_seconds = state.options.list_lag_seconds
    shown = asdict(state.options)
    return {key: value for key, value in shown.items() if key != "api_key"}


ROUTES: tuple[tuple[str, str, Work], ...] = (
    ("POST", "/faults", add_fault),
    ("GET", "/faults", list_faults),
    ("DELETE", "/faults", remove_faults),
    ("DELETE", "/faults/{id}", remove_faults),
    ("POST", "/pods/{id}/kill", kill_pod),
    ("POST", "/pods/{id}/logs", write_log),
    ("GET", "/pods", list_pods),
    ("POST", "/pods", add_pod),
    ("POST", "/behaviours", add_behaviour),
    ("DELETE", "/behaviours", clear_behaviours),
    ("PUT", "/stock", set_stock),
    ("POST", "/clock/advance", advance),
    ("GET", "/clock", show_clock),
    ("GET", "/ledger", show_ledger),
    ("GET", "/requests", show_requests),
    ("PATCH", "/options", set_options),
)
