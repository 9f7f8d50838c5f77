"""The simulated pod endpoints: create, list, get, patch, delete, action, logs.

Fed by ``app`` after the edge checks; they change ``model`` and answer with ``views``.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from aiohttp import web

from vk_provider_runpod.simulator import sse, validation, views
from vk_provider_runpod.simulator.calls import CALL, read_json, state_of
from vk_provider_runpod.simulator.model import SimulatedPod
from vk_provider_runpod.simulator.placing import RefusalError
from vk_provider_runpod.simulator.state import State


def _pod_view(state: State, pod: SimulatedPod) -> dict[str, Any]:
    return views.pod(pod, state.model.catalogue, state.clock.now())


async def create_pod(request: web.Request) -> web.Response:
    """``POST /v2/pods``: the pod exists at a random moment within the configured latency."""
    state = state_of(request)
    latency = state.faults.between(*state.options.create_latency_ms) / 1000
    share = state.faults.between(0, 1)
    body = validation.create_pod(await read_json(request))
    if body.get("registry") and body["registry"] not in state.model.registries:
        raise RefusalError(400, "registry credential not found")
    await state.pause(latency * share)
    fault = CALL.get().fault
    factor = fault.factor if fault and fault.kind == "dearer" else 1.0
    pod = state.model.create(state.new_id(), body, state.clock.now(), factor)
    CALL.get().record.instance = pod.id
    if state.shells is not None:
        state.shells.open(pod)
    await state.pause(latency * (1 - share))
    return web.json_response(_pod_view(state, pod), status=201)


async def list_pods(request: web.Request) -> web.Response:
    """``GET /v2/pods``: newest first, in pages."""
    state = state_of(request)
    if request.query.get("includeClusterPods", "false") not in ("true", "false"):
        raise RefusalError(422, "Request validation failed.", ("includeClusterPods: want boolean",))
    kind = CALL.get().meets
    pods = [] if kind == "empty-list" else state.model.listed(state.clock.now())
    after = _cursor(request.query.get("cursor"))
    if kind == "broken-page":
        raise RefusalError(503, "upstream unavailable")
    rest = [pod for pod in pods if after is None or (pod.created_at, pod.number) < after]
    page = rest[: _limit(request.query.get("limit"), state.options.page_size)]
    more = len(page) < len(rest)
    last = page[-2] if kind == "repeat-page" and len(page) > 1 else page[-1] if page else None
    cursor = _encode(last) if more and last else None
    body = {
        "pods": [_pod_view(state, pod) for pod in page],
        "pagination": {"nextCursor": cursor, "hasNextPage": more},
    }
    return web.json_response(body)


def _limit(text: str | None, most: int) -> int:
    return max(1, min(most, int(text))) if text and text.isascii() and text.isdigit() else most


def _encode(pod: SimulatedPod) -> str:
    return base64.urlsafe_b64encode(json.dumps([pod.created_at, pod.number]).encode()).decode()


def _cursor(text: str | None) -> tuple[float, int] | None:
    if not text:
        return None
    try:
        created, number = json.loads(base64.urlsafe_b64decode(text))
        return float(created), int(number)
    except (ValueError, TypeError):
        raise RefusalError(400, "invalid cursor") from None


async def get_pod(request: web.Request) -> web.Response:
    """``GET /v2/pods/{id}``."""
    state = state_of(request)
    pod = state.model.get(request.match_info["id"], state.clock.now())
    return web.json_response(_pod_view(state, pod))


async def update_pod(request: web.Request) -> web.Response:
    """``PATCH /v2/pods/{id}``: anything but name and lock resets the container."""
    state = state_of(request)
    now = state.clock.now()
    pod = state.model.get(request.match_info["id"], now)
    changes = validation.update_pod(await read_json(request))
    settled = {key: value for key, value in changes.items() if key != "locked"}
    old, new = pod.body.get("mounts") or {}, settled.get("mounts") or {}
    if set(new) - set(old):
        raise RefusalError(400, "the kind of a mount is fixed at create")
    if new.get("network") and new["network"][0]["volumeId"] != old["network"][0]["volumeId"]:
        raise RefusalError(400, "volumeId is immutable")
    pod.locked = bool(changes.get("locked", pod.locked))
    pod.body.update(settled)
    if set(settled) - {"name"} and pod.ended is None:
        pod.started_at = now
    return web.json_response(_pod_view(state, pod))


async def delete_pod(request: web.Request) -> web.Response:
    """``DELETE /v2/pods/{id}``: 204 without a body."""
    state = state_of(request)
    fault = CALL.get().fault
    lingering = fault.seconds if fault and fault.kind == "lingering" else 0.0
    state.model.delete(request.match_info["id"], state.clock.now(), lingering)
    return web.Response(status=204)


async def pod_action(request: web.Request) -> web.Response:
    """``POST /v2/pods/{id}/action``."""
    state = state_of(request)
    pod_id, now = request.match_info["id"], state.clock.now()
    state.model.get(pod_id, now)
    action = validation.pod_action(await read_json(request))
    pod = state.model.act(pod_id, action, now)
    return web.Response(status=204) if pod is None else web.json_response(_pod_view(state, pod))


async def pod_logs(request: web.Request) -> web.StreamResponse:
    """``GET /v2/pods/{id}/logs``: a stream of server-sent events."""
    state = state_of(request)
    pod = state.model.get(request.match_info["id"], state.clock.now())
    wanted = validation.log_query(request.query, request.headers.get("Last-Event-ID"))
    return await sse.stream(request, state, pod, wanted)
