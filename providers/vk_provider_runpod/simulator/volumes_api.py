"""The simulated network volume endpoints.

Fed by ``app`` after the edge checks; keep volumes in ``model`` and answer with ``views``.
"""

from __future__ import annotations

from aiohttp import web

from vk_provider_runpod.simulator import validation, views
from vk_provider_runpod.simulator.calls import read_json, state_of
from vk_provider_runpod.simulator.model import Volume
from vk_provider_runpod.simulator.placing import RefusalError


async def list_volumes(request: web.Request) -> web.Response:
    """``GET /v2/network-volumes``."""
    volumes = state_of(request).model.volumes.values()
    return web.json_response({"networkVolumes": [views.volume(each) for each in volumes]})


async def create_volume(request: web.Request) -> web.Response:
    """``POST /v2/network-volumes``: a data centre without volumes is refused by name."""
    state = state_of(request)
    body = validation.create_volume(await read_json(request))
    centres = {centre.id: centre for centre in state.model.catalogue.centres}
    centre = centres.get(body["dataCenter"])
    if centre is None or not centre.volume_types:
        good = ", ".join(each.id for each in centres.values() if each.volume_types)
        raise RefusalError(400, f"network volumes are not supported there; supported: {good}")
    kind = body.get("type", centre.volume_types[0])
    if kind not in centre.volume_types:
        raise RefusalError(400, f"{centre.id} has no volumes of type {kind}")
    volume = Volume(state.new_id(), body["name"], int(body["size"]), centre.id, kind)
    state.model.volumes[volume.id] = volume
    return web.json_response(views.volume(volume), status=201)


def _volume(request: web.Request) -> Volume:
    found = state_of(request).model.volumes.get(request.match_info["id"])
    if found is None:
        raise RefusalError(404, "network volume not found")
    return found


async def get_volume(request: web.Request) -> web.Response:
    """``GET /v2/network-volumes/{id}``."""
    return web.json_response(views.volume(_volume(request)))


async def update_volume(request: web.Request) -> web.Response:
    """``PATCH /v2/network-volumes/{id}``: a name, or more room."""
    volume = _volume(request)
    body = validation.update_volume(await read_json(request))
    size = int(body.get("size", volume.size))
    if size < volume.size:
        raise RefusalError(400, "a network volume can't shrink")
    volume.name, volume.size = body.get("name", volume.name), size
    return web.json_response(views.volume(volume))


async def delete_volume(request: web.Request) -> web.Response:
    """``DELETE /v2/network-volumes/{id}``: refused while a pod mounts it."""
    model, volume = state_of(request).model, _volume(request)
    for pod in model.present.values():
        mounts = (pod.body.get("mounts") or {}).get("network") or []
        if pod.deleted_at is None and any(each["volumeId"] == volume.id for each in mounts):
            raise RefusalError(400, "network volume is in use by a pod")
    del model.volumes[volume.id]
    return web.Response(status=204)
