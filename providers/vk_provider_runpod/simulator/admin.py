"""The orders of the back door that are this simulator's: kill pods, write logs, set stock.

Fed by tests, demos and people with curl; changes ``model`` and ``state``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from aiohttp import web

from vk_provider.fields import show
from vk_provider.testing.simulator.back_door import Route, find
from vk_provider.testing.simulator.clock import rfc3339
from vk_provider.testing.simulator.orders import BadRequestError, read_order
from vk_provider_runpod.simulator.model import SimulatedPod
from vk_provider_runpod.simulator.state import State

HOW = (
    "vanish",
    "exited",
    "error",
    "status",
    "hide-fields",
    "hide-runtime",
    "restart",
    "migrate",
    "lock",
)
"""What ``POST /_sim/pods/{id}/kill`` can do to a pod, as ``{"how": ...}``."""
_AT_START = (
    "api_key", "host", "port", "speed", "seed", "runs_exec", "foreign_pods", "pull_seconds",
    "log_every_seconds",
)  # fmt: skip
"""Options that count when the simulator starts, and never again."""


def kill_pod(state: State, request: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/pods/{id}/kill`` ``{"how": "vanish"}``; ``id`` may be a Kubernetes pod UID."""
    now = state.clock.now()
    pod = _living(state, request.match_info["id"])
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
    elif how == "migrate":
        # The service moves it to another host, where it begins anew under a new id.
        state.model.vanish(pod.id, now)
        pod = state.model.create(state.new_id(), pod.body, now)
        if state.shells is not None:
            state.shells.open(pod)
    elif how == "lock":
        pod.locked = True
    else:
        _deface(pod, how, body)
    return describe(pod, now)


def write_log(state: State, request: web.Request, body: Mapping[str, Any]) -> Any:
    """``POST /_sim/pods/{id}/logs`` ``{"line": "...", "source": "container"}``."""
    pod = _living(state, request.match_info["id"])
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


def _living(state: State, key: str) -> SimulatedPod:
    return find((pod for pod in state.model.pods.values() if pod.deleted_at is None), key, "pod")


def describe(pod: SimulatedPod, now: float) -> dict[str, Any]:
    """One pod with what no client can see."""
    return {
        "id": pod.id,
        "name": pod.body["name"],
        "status": pod.status(now),
        "uptime": pod.uptime(now),
        "podUid": pod.owner.pod_uid or None,
        "node": pod.owner.node_name or None,
        "cluster": pod.owner.cluster_id or None,
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


def set_stock(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``PUT /_sim/stock`` ``{gpu, dataCenter, free}``; ``free`` null: unlimited again."""
    catalogue = state.model.catalogue
    sold = [*(gpu.id for gpu in catalogue.gpus), *(cpu.id for cpu in catalogue.cpus)]
    kind = _one_of(sold, body.get("gpu") or body.get("cpu"), "gpu or cpu")
    places = ["*", *(each.id for each in catalogue.centres)]
    centre = _one_of(places, body.get("dataCenter", "*"), "dataCenter")
    free = body.get("free")
    if free is None:
        catalogue.limits.pop((kind, centre), None)
    elif isinstance(free, int) and free >= 0:
        catalogue.limits[(kind, centre)] = free
    else:
        raise BadRequestError(f"free: found {show(free)}, allowed: a whole number, 0 or more")
    return {f"{k} in {c}": n for (k, c), n in catalogue.limits.items()}


def _one_of(known: Sequence[str], found: object, key: str) -> str:
    if isinstance(found, str) and found in known:
        return found
    raise BadRequestError(f"{key}: found {show(found)}, allowed: {', '.join(known)}")


def set_options(state: State, _: web.Request, body: Mapping[str, Any]) -> Any:
    """``PATCH /_sim/options`` ``{listLagSeconds, createLatencyMs, dropLogsAfter, ...}``."""
    settings = read_order(body, type(state.options), ["dropLogsAfter"], _AT_START)
    if "drop_logs_after" in settings:
        state.drop_logs_after = int(settings.pop("drop_logs_after"))
    state.options = replace(state.options, **settings)
    state.model.list_lag_seconds = state.options.list_lag_seconds
    shown = asdict(state.options)
    return {key: value for key, value in shown.items() if key != "api_key"}


ROUTES: tuple[Route, ...] = (
    ("POST", "/pods/{id}/kill", kill_pod),
    ("POST", "/pods/{id}/logs", write_log),
    ("GET", "/pods", list_pods),
    ("POST", "/pods", add_pod),
    ("PUT", "/stock", set_stock),
    ("PATCH", "/options", set_options),
)
"""What this simulator can be told besides what all can."""
