"""The simulated catalogue and registry endpoints.

Fed by ``app`` after the edge checks; read the ``catalogue``, keep registries in ``model``.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from vk_provider_runpod.simulator import validation, views
from vk_provider_runpod.simulator.calls import read_json, state_of
from vk_provider_runpod.simulator.placing import RefusalError, version


async def list_registries(request: web.Request) -> web.Response:
    """``GET /v2/registries``."""
    registries = state_of(request).model.registries
    return web.json_response({"registries": [{"id": k, "name": v} for k, v in registries.items()]})


async def create_registry(request: web.Request) -> web.Response:
    """``POST /v2/registries``: names are unique; the secret is never kept or shown."""
    state = state_of(request)
    name = validation.create_registry(await read_json(request))["name"]
    if name in state.model.registries.values():
        raise RefusalError(400, f"a registry named {name!r} exists already")
    registry_id = state.new_id()
    state.model.registries[registry_id] = name
    usable_at = state.clock.now() + state.options.registry_seconds
    state.model.usable_at[registry_id] = usable_at
    return web.json_response({"id": registry_id, "name": name}, status=201)


def _registry_id(request: web.Request) -> str:
    registry_id = request.match_info["id"]
    if registry_id not in state_of(request).model.registries:
        raise RefusalError(404, "registry not found")
    return registry_id


async def get_registry(request: web.Request) -> web.Response:
    """``GET /v2/registries/{id}``."""
    found = _registry_id(request)
    return web.json_response({"id": found, "name": state_of(request).model.registries[found]})


async def delete_registry(request: web.Request) -> web.Response:
    """``DELETE /v2/registries/{id}``: refused while a pod uses it."""
    state, found = state_of(request), _registry_id(request)
    pods = state.model.pods.values()
    if any(pod.body.get("registry") == found and pod.deleted_at is None for pod in pods):
        raise RefusalError(400, "registry credential is in use by a pod")
    del state.model.registries[found]
    state.model.usable_at.pop(found, None)
    return web.Response(status=204)


async def list_gpus(request: web.Request) -> web.Response:
    """``GET /v2/catalog/gpus``."""
    wanted = validation.catalogue_query(request.query, ("POD", "CLUSTER", "SERVERLESS"))
    catalogue = state_of(request).model.catalogue
    stocked = bool(wanted["include"])
    gpus = [views.gpu_type(gpu, catalogue, stocked, wanted) for gpu in catalogue.gpus]
    return web.json_response({"gpus": [_with_cuda(gpu, request) for gpu in gpus]})


async def get_gpu(request: web.Request) -> web.Response:
    """``GET /v2/catalog/gpus/{id}``."""
    wanted = validation.catalogue_query(request.query, ("POD", "CLUSTER", "SERVERLESS"))
    catalogue = state_of(request).model.catalogue
    gpu = catalogue.gpu(request.match_info["id"])
    if gpu is None:
        raise RefusalError(404, "gpu type not found")
    view = views.gpu_type(gpu, catalogue, bool(wanted["include"]), wanted)
    return web.json_response(_with_cuda(view, request))


def _with_cuda(view: dict[str, Any], request: web.Request) -> dict[str, Any]:
    exact, floor = request.query.get("cudaVersions"), request.query.get("minCudaVersion")
    kept = []
    for entry in view.get("cudaVersions", []):
        listed = exact is None or entry["version"] in exact.split(",")
        if listed and (floor is None or version(entry["version"]) >= version(floor)):
            kept.append(entry)
    if "cudaVersions" not in view:
        return view
    if kept:
        return {**view, "cudaVersions": kept}
    without = {key: value for key, value in view.items() if key != "cudaVersions"}
    return {**without, "availability": "NONE"}


async def list_cpus(request: web.Request) -> web.Response:
    """``GET /v2/catalog/cpus``."""
    wanted = validation.catalogue_query(request.query, ("POD", "SERVERLESS"))
    catalogue = state_of(request).model.catalogue
    stocked = bool(wanted["include"])
    return web.json_response(
        {"cpus": [views.cpu_type(cpu, catalogue, stocked) for cpu in catalogue.cpus]}
    )


async def get_cpu(request: web.Request) -> web.Response:
    """``GET /v2/catalog/cpus/{id}``."""
    wanted = validation.catalogue_query(request.query, ("POD", "SERVERLESS"))
    catalogue = state_of(request).model.catalogue
    cpu = catalogue.cpu(request.match_info["id"])
    if cpu is None:
        raise RefusalError(404, "cpu type not found")
    return web.json_response(views.cpu_type(cpu, catalogue, bool(wanted["include"])))


async def list_centres(request: web.Request) -> web.Response:
    """``GET /v2/catalog/datacenters``."""
    wanted = validation.centre_query(request.query)
    catalogue = state_of(request).model.catalogue
    kept = [
        views.data_centre(centre, catalogue, wanted["include"])
        for centre in catalogue.centres
        if (not wanted["regions"] or centre.region in wanted["regions"])
        and set(wanted["networkVolumeTypes"]) <= set(centre.volume_types)
        and set(wanted["compliance"]) <= set(centre.compliance)
        and (
            not wanted["globalNetwork"] or wanted["globalNetwork"] == [_flag(centre.global_network)]
        )
    ]
    return web.json_response({"dataCenters": kept})


async def get_centre(request: web.Request) -> web.Response:
    """``GET /v2/catalog/datacenters/{id}``."""
    wanted = validation.centre_query(request.query)
    catalogue = state_of(request).model.catalogue
    for centre in catalogue.centres:
        if centre.id == request.match_info["id"]:
            return web.json_response(views.data_centre(centre, catalogue, wanted["include"]))
    raise RefusalError(404, "data center not found")


def _flag(value: bool) -> str:
    return "true" if value else "false"
