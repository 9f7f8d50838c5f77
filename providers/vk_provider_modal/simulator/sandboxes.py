"""The calls about sandboxes: make, list, wait for, end one; ask for its machine, ports and tags.

Each function takes the workspace and one request and gives the answer. Elder and newer (``V2``)
calls are the same work under two names. Fed by ``control``; changes ``model``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from modal_proto import api_pb2

from vk_provider_modal.simulator.model import (
    GPU_USD_PER_SECOND,
    STATUSES,
    End,
    RefusalError,
    SimulatedSandbox,
    Wish,
)
from vk_provider_modal.simulator.results import generic, result_of
from vk_provider_modal.simulator.service import Work
from vk_provider_modal.simulator.state import State

POLL_SECONDS = 0.02
TUNNEL_DOMAIN = "w.modal.host"


async def create_sandbox(state: State, request: Any) -> Any:
    """``SandboxCreate`` and ``SandboxCreateV2``."""
    is_v2 = isinstance(request, api_pb2.SandboxCreateV2Request)
    definition = request.definition
    wish = Wish(
        app_id=request.app_id,
        definition=definition,
        tags={tag.tag_name: tag.tag_value for tag in request.tags},
        env=_env(state, request, is_v2=is_v2),
        image=state.images.get(definition.image_id, {}),
        is_v2=is_v2,
    )
    state.wishes.append(wish)
    _check(wish)
    # The length of the id tells which of the two it is.
    ids = (state.new_id("sb", 26 if is_v2 else 22), state.new_id("ta"))
    sandbox = state.model.create(ids, wish, state.clock.now())
    metadata = api_pb2.SandboxHandleMetadata(app_id=wish.app_id)
    if is_v2:
        return api_pb2.SandboxCreateV2Response(
            sandbox_id=sandbox.id, task_id=sandbox.task_id, metadata=metadata
        )
    return api_pb2.SandboxCreateResponse(sandbox_id=sandbox.id, metadata=metadata)


def _env(state: State, request: Any, *, is_v2: bool) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for secret_id in request.definition.secret_ids:
        found |= state.secrets.get(secret_id, {})
    for source in request.secret_sources if is_v2 else ():
        found |= dict(source.env.contents) or state.secrets.get(source.secret_id, {})
    return found


def _check(wish: Wish) -> None:
    definition, (gpu, count) = wish.definition, wish.gpu
    if wish.is_v2 and count:
        raise RefusalError("INVALID_ARGUMENT", "GPUs are not supported by V2 sandboxes")
    if count and gpu.rstrip("!+") not in GPU_USD_PER_SECOND:
        raise RefusalError("INVALID_ARGUMENT", f"Unknown GPU type '{gpu}'")
    if not 0 < definition.timeout_secs <= 86_400:
        raise RefusalError("INVALID_ARGUMENT", "Sandbox timeout must be at most 24 hours")
    if not wish.image:
        raise RefusalError("NOT_FOUND", f"Image {definition.image_id} not found")


async def get_task_id(state: State, request: Any) -> api_pb2.SandboxGetTaskIdResponse:
    """``SandboxGetTaskId``: empty while it queues; a result where it ended without a place."""
    sandbox = state.model.get(request.sandbox_id, state.clock.now())
    if sandbox.end is not None and (sandbox.placed_at is None or not _ran(sandbox)):
        return api_pb2.SandboxGetTaskIdResponse(task_result=result_of(sandbox))
    placed = sandbox.placed_at is not None
    return api_pb2.SandboxGetTaskIdResponse(task_id=sandbox.task_id if placed else "")


def _ran(sandbox: SimulatedSandbox) -> bool:
    return sandbox.behaviour.start_failure is None


async def wait(state: State, request: Any) -> api_pb2.SandboxWaitResponse:
    """``SandboxWait``: holds for ``timeout`` seconds unless it ends before."""
    deadline = asyncio.get_running_loop().time() + request.timeout
    while True:
        sandbox = state.model.get(request.sandbox_id, state.clock.now())
        is_late = asyncio.get_running_loop().time() >= deadline or state.closing.is_set()
        if sandbox.end is not None or is_late:
            metadata = api_pb2.SandboxHandleMetadata(
                app_id=sandbox.wish.app_id, result=result_of(sandbox)
            )
            return api_pb2.SandboxWaitResponse(result=result_of(sandbox), metadata=metadata)
        await state.pause(POLL_SECONDS)


async def terminate(state: State, request: Any) -> api_pb2.SandboxTerminateResponse:
    """``SandboxTerminate``: does nothing to what has ended."""
    now = state.clock.now()
    sandbox = state.model.get(request.sandbox_id, now)
    before = result_of(sandbox)
    state.model.finish(sandbox, End(STATUSES.index("TERMINATED"), now))
    return api_pb2.SandboxTerminateResponse(existing_result=before)


async def list_sandboxes(state: State, request: Any) -> api_pb2.SandboxListResponse:
    """``SandboxList``: one page, newest first, of those made before ``before_timestamp``."""
    now = state.clock.now()
    wanted = {(tag.tag_name, tag.tag_value) for tag in request.tags}
    before = request.before_timestamp or float("inf")
    found = [
        each
        for each in state.model.listed(now, finished=request.include_finished)
        if each.created_at < before
        and request.app_id in ("", each.wish.app_id)
        and wanted <= each.wish.tags.items()
    ]
    page = found[: state.options.page_size]
    return api_pb2.SandboxListResponse(sandboxes=[_info(each, now) for each in page])


def _info(sandbox: SimulatedSandbox, now: float) -> api_pb2.SandboxInfo:
    wish, started = sandbox.wish, sandbox.is_started(now)
    strange = sandbox.shown_status
    result = result_of(sandbox) if strange is None else generic(strange)
    task = api_pb2.TaskInfo(
        id=sandbox.task_id if sandbox.placed_at is not None else "",
        started_at=(sandbox.started_at or 0.0) if started else 0.0,
        finished_at=0.0 if sandbox.end is None else sandbox.end.at,
        result=result,
        sandbox_id=sandbox.id,
    )
    return api_pb2.SandboxInfo(
        id=sandbox.id,
        created_at=sandbox.created_at,
        task_info=task,
        app_id=wish.app_id,
        tags=[api_pb2.SandboxTag(tag_name=k, tag_value=v) for k, v in wish.tags.items()],
        name=wish.name,
        image_id=wish.definition.image_id,
        timeout_secs=wish.definition.timeout_secs,
    )


async def tunnels(state: State, request: Any) -> api_pb2.SandboxGetTunnelsResponse:
    """``SandboxGetTunnels``."""
    now = state.clock.now()
    sandbox = state.model.get(request.sandbox_id, now)
    if not sandbox.is_started(now):
        timeout = generic(STATUSES.index("TIMEOUT"))
        return api_pb2.SandboxGetTunnelsResponse(result=timeout)
    ports = sandbox.wish.definition.open_ports.ports
    success = generic(STATUSES.index("SUCCESS"))
    return api_pb2.SandboxGetTunnelsResponse(
        result=success, tunnels=[_tunnel(sandbox, each, state) for each in ports]
    )


def _tunnel(sandbox: SimulatedSandbox, port: Any, state: State) -> api_pb2.TunnelData:
    host = f"{sandbox.id.lower()}-{port.port}.{TUNNEL_DOMAIN}"
    plain = {"unencrypted_host": f"r1.{TUNNEL_DOMAIN}", "unencrypted_port": 30_000 + port.port}
    if state.options.runs_exec:
        # What its commands listen on are ports of this machine.
        plain = {"unencrypted_host": state.options.host, "unencrypted_port": port.port}
    return api_pb2.TunnelData(
        host=host, port=443, container_port=port.port, **(plain if port.unencrypted else {})
    )


async def get_tags(state: State, request: Any) -> api_pb2.SandboxTagsGetResponse:
    """``SandboxTagsGet``."""
    sandbox = state.model.get(request.sandbox_id, state.clock.now())
    tags = [api_pb2.SandboxTag(tag_name=k, tag_value=v) for k, v in sandbox.wish.tags.items()]
    return api_pb2.SandboxTagsGetResponse(tags=tags)


async def by_name(state: State, request: Any) -> api_pb2.SandboxGetFromNameResponse:
    """``SandboxGetFromName``: among the living."""
    app_id = state.app(request.app_name)
    for each in state.model.living.values():
        if (each.wish.name, each.wish.app_id) == (request.sandbox_name, app_id):
            return api_pb2.SandboxGetFromNameResponse(sandbox_id=each.id)
    raise RefusalError("NOT_FOUND", f"Sandbox with name '{request.sandbox_name}' not found")


SANDBOX: Mapping[str, Work] = {
    "SandboxCreate": create_sandbox,
    "SandboxGetTaskId": get_task_id,
    "SandboxWait": wait,
    "SandboxTerminate": terminate,
    "SandboxList": list_sandboxes,
    "SandboxGetTunnels": tunnels,
    "SandboxTagsGet": get_tags,
    "SandboxGetFromName": by_name,
}
"""Every call about sandboxes, by its elder name."""
