"""The simulated REST v2 service: routes, authentication, rate limit and the scripted faults.

Every call runs the same way: record, edge checks, fault before, work, fault after, headers.
Fed by any client of the API; feeds ``model`` and answers with ``views``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from aiohttp import web

from vk_provider.testing.simulator.back_door import add_routes
from vk_provider.testing.simulator.clock import http_date
from vk_provider_runpod.simulator import admin, billing_api, pods_api, shop_api, volumes_api
from vk_provider_runpod.simulator.calls import CALL, STATE, Call, problem, read_json
from vk_provider_runpod.simulator.faults import Fault
from vk_provider_runpod.simulator.placing import RefusalError
from vk_provider_runpod.simulator.state import State

Work = Callable[[web.Request], Awaitable[web.StreamResponse]]
_HTML = "<!DOCTYPE html><html><head><title>{0}</title></head><body>error code: {0}</body></html>"


def make_app(state: State) -> web.Application:
    """The service with its ``/_sim`` back door, ready for a runner."""
    app = web.Application(client_max_size=8 * 2**20)
    app[STATE] = state
    for operation, method, path, work in ROUTES:
        app.router.add_route(method, path, _served(state, operation, work))
    # The document knows no other paths or methods; the service answers those as JSON too.
    app.router.add_route("*", "/v2{rest:.*}", _served(state, "unknown", _unknown_path))
    add_routes(app, state, admin.ROUTES, state.shells.sweep if state.shells else None)
    return app


def _served(state: State, operation: str, work: Work) -> Work:
    async def serve(request: web.Request) -> web.StreamResponse:
        record = state.record(request.method, request.path, operation)
        CALL.set(Call(record))
        response = await _answer(state, operation, work, request)
        if state.shells is not None:
            state.shells.sweep()
        if request.transport is not None and not request.transport.is_closing():
            record.answered_at, record.status = state.clock.now(), response.status
        return response

    return serve


async def _answer(
    state: State, operation: str, work: Work, request: web.Request
) -> web.StreamResponse:
    refusal = _edge(state, request)
    if refusal is not None:
        return refusal
    left = state.spend_call()
    response = await _guarded(state, operation, work, request, left)
    if not response.prepared:
        response.headers.update(_headers(state, left))
    return response


async def _guarded(
    state: State,
    operation: str,
    work: Work,
    request: web.Request,
    left: tuple[int, int] | None,
) -> web.StreamResponse:
    try:
        if left is not None and left[0] < 0:
            raise RefusalError(429, "rate limit exceeded for the minute window")
        return await _worked(state, operation, work, request)
    except RefusalError as refusal:
        response = problem(refusal.status, refusal.detail, refusal.errors)
        if refusal.status == 429:
            response.headers.setdefault("Retry-After", str(left[1] if left else 1))
        return response


def _edge(state: State, request: web.Request) -> web.Response | None:
    agent = request.headers.get("User-Agent", "")
    if not agent or agent.startswith("Python-urllib"):
        return web.Response(status=403, text=_HTML.format(1010), content_type="text/html")
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        return problem(401, "missing bearer token")
    if state.options.api_key not in (None, token.strip()):
        return problem(401, "invalid bearer token")
    return None


async def _worked(
    state: State, operation: str, work: Work, request: web.Request
) -> web.StreamResponse:
    facts = await _facts(operation, request)
    if "body" in facts:
        state.bodies.append(facts["body"])
    fault = state.faults.draw(operation, facts)
    call = CALL.get()
    call.record.pod_uid = facts.get("uid")
    if fault is None:
        return await work(request)
    call.record.fault = fault.kind
    call.fault = fault
    if not fault.is_after:
        early = await _misfortune(state, fault, request)
        return await work(request) if early is None else early
    response = await work(request)
    late = await _misfortune(state, fault, request)
    return response if late is None else late


async def _misfortune(
    state: State, fault: Fault, request: web.Request
) -> web.StreamResponse | None:
    await state.pause(state.faults.delay_seconds(fault))
    if fault.kind.startswith(("hang", "reset")):
        return _hang_up(request)
    if fault.kind.startswith("garbage"):
        return web.Response(text=_HTML.format("surprise"), content_type="text/html")
    if fault.kind == "blocked":
        return web.Response(status=403, text=_HTML.format(1010), content_type="text/html")
    answer = fault.answer()
    if answer is None:
        return None
    response = problem(*answer)
    if answer[0] == 429:
        response.headers["Retry-After"] = str(fault.retry_after)
    return response


def _hang_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


async def _facts(operation: str, request: web.Request) -> dict[str, Any]:
    if operation != "createPod":
        return {"text": request.path, "cursor": request.query.get("cursor")}
    body: Any = None
    with suppress(RefusalError):  # a malformed body is refused in its turn, after the faults
        body = await read_json(request)
    if not isinstance(body, dict):
        return {}
    gpu, env = body.get("gpu"), body.get("env")
    return {
        "gpu": gpu.get("id") if isinstance(gpu, dict) else None,
        "body": body,
        "data_centers": body.get("dataCenterIds"),
        "text": f"{body.get('name')} {body.get('image')}",
        "uid": env.get("VK_PROVIDER_POD_UID") if isinstance(env, dict) else None,
    }


def _headers(state: State, left: tuple[int, int] | None) -> Mapping[str, str]:
    number = len(state.requests)
    headers = {"Date": http_date(state.clock.now()), "x-request-id": f"req-{number:08x}"}
    if left is not None:
        limit = state.options.requests_per_minute
        headers["RateLimit"] = f'"minute";r={max(0, left[0])};t={left[1]}'
        headers["RateLimit-Policy"] = f'"minute";q={limit};w=60'
    return headers


async def _unknown_path(request: web.Request) -> web.Response:
    raise RefusalError(404, "resource not found")


ROUTES: tuple[tuple[str, str, str, Work], ...] = (
    ("listPods", "GET", "/v2/pods", pods_api.list_pods),
    ("createPod", "POST", "/v2/pods", pods_api.create_pod),
    ("getPod", "GET", "/v2/pods/{id}", pods_api.get_pod),
    ("updatePod", "PATCH", "/v2/pods/{id}", pods_api.update_pod),
    ("deletePod", "DELETE", "/v2/pods/{id}", pods_api.delete_pod),
    ("podAction", "POST", "/v2/pods/{id}/action", pods_api.pod_action),
    ("getPodLogs", "GET", "/v2/pods/{id}/logs", pods_api.pod_logs),
    ("listRegistries", "GET", "/v2/registries", shop_api.list_registries),
    ("createRegistry", "POST", "/v2/registries", shop_api.create_registry),
    ("getRegistry", "GET", "/v2/registries/{id}", shop_api.get_registry),
    ("deleteRegistry", "DELETE", "/v2/registries/{id}", shop_api.delete_registry),
    ("listNetworkVolumes", "GET", "/v2/network-volumes", volumes_api.list_volumes),
    ("createNetworkVolume", "POST", "/v2/network-volumes", volumes_api.create_volume),
    ("getNetworkVolume", "GET", "/v2/network-volumes/{id}", volumes_api.get_volume),
    ("updateNetworkVolume", "PATCH", "/v2/network-volumes/{id}", volumes_api.update_volume),
    ("deleteNetworkVolume", "DELETE", "/v2/network-volumes/{id}", volumes_api.delete_volume),
    ("listGpuTypes", "GET", "/v2/catalog/gpus", shop_api.list_gpus),
    ("getGpuType", "GET", "/v2/catalog/gpus/{id}", shop_api.get_gpu),
    ("listCpuTypes", "GET", "/v2/catalog/cpus", shop_api.list_cpus),
    ("getCpuType", "GET", "/v2/catalog/cpus/{id}", shop_api.get_cpu),
    ("listDataCenters", "GET", "/v2/catalog/datacenters", shop_api.list_centres),
    ("listPodBilling", "GET", "/v2/billing/pods", billing_api.list_pod_billing),
    ("getDataCenter", "GET", "/v2/catalog/datacenters/{id}", shop_api.get_centre),
)
"""Every operation served, under its id in the document."""
