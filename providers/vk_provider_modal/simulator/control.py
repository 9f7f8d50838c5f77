"""The control plane's calls: Apps, Secrets, Volumes, images, sandboxes, their output and prices.

Each function takes the workspace and one request and gives the answer. Elder and newer (``V2``)
calls are the same work under two names.
Fed by ``service``; changes ``model``.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from modal_proto import api_pb2

from vk_provider_modal.simulator.lines import MOST_LINES, SOURCES, logs, printed
from vk_provider_modal.simulator.model import (
    GPU_USD_PER_SECOND,
    STATUSES,
    End,
    RefusalError,
    SimulatedSandbox,
    Wish,
)
from vk_provider_modal.simulator.service import StreamedWork, Work
from vk_provider_modal.simulator.state import State

BUILDER_VERSION = "2025.06"
POLL_SECONDS = 0.02
TOKEN_SECONDS = 3600
TUNNEL_DOMAIN = "w.modal.host"


async def hello(state: State, request: Any) -> api_pb2.ClientHelloResponse:
    """``ClientHello``."""
    return api_pb2.ClientHelloResponse(image_builder_version=BUILDER_VERSION)


async def get_app(state: State, request: Any) -> api_pb2.AppGetOrCreateResponse:
    """``AppGetOrCreate``: the same name, the same App."""
    return api_pb2.AppGetOrCreateResponse(app_id=state.app(request.app_name))


async def get_environment(state: State, request: Any) -> api_pb2.EnvironmentGetOrCreateResponse:
    """``EnvironmentGetOrCreate``."""
    settings = api_pb2.EnvironmentSettings(image_builder_version=BUILDER_VERSION)
    metadata = api_pb2.EnvironmentMetadata(
        name=request.deployment_name or "main", settings=settings
    )
    return api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-main", metadata=metadata)


async def get_token(state: State, request: Any) -> api_pb2.AuthTokenGetResponse:
    """``AuthTokenGet``: a token of three parts that says when it expires."""
    return api_pb2.AuthTokenGetResponse(token=_token())


def _token() -> str:
    """Clients look into it, by their own clocks."""
    claims = json.dumps({"exp": int(time.time()) + TOKEN_SECONDS})
    parts = (json.dumps({"alg": "none"}), claims, "simulated")
    return ".".join(base64.urlsafe_b64encode(p.encode()).decode().rstrip("=") for p in parts)


async def get_secret(state: State, request: Any) -> api_pb2.SecretGetOrCreateResponse:
    """``SecretGetOrCreate``: an anonymous one of the App's."""
    secret_id = state.new_id("st")
    state.secrets[secret_id] = dict(request.env_dict)
    return api_pb2.SecretGetOrCreateResponse(
        secret_id=secret_id, metadata=api_pb2.SecretMetadata(name=request.deployment_name)
    )


async def get_volume(state: State, request: Any) -> api_pb2.VolumeGetOrCreateResponse:
    """``VolumeGetOrCreate``: those whose name begins with ``missing`` are not there."""
    name = request.deployment_name
    if name.startswith("missing"):
        raise RefusalError("NOT_FOUND", f"Volume '{name}' not found in environment 'main'")
    volume_id = state.volumes.setdefault(name, state.new_id("vo"))
    return api_pb2.VolumeGetOrCreateResponse(
        volume_id=volume_id, metadata=api_pb2.VolumeMetadata(name=name)
    )


async def get_image(state: State, request: Any) -> api_pb2.ImageGetOrCreateResponse:
    """``ImageGetOrCreate``: built at once, from its Dockerfile's lines."""
    image_id = state.new_id("im")
    lines = list(request.image.dockerfile_commands)
    reference = next((line[5:] for line in lines if line.startswith("FROM ")), "")
    config = request.image.image_registry_config
    state.images[image_id] = {
        "reference": reference,
        "dockerfile": [line for line in lines if not line.startswith("FROM ")],
        "login": dict(state.secrets.get(config.secret_id, {})),
        "forceBuild": request.force_build,
    }
    return api_pb2.ImageGetOrCreateResponse(image_id=image_id)


async def build_image(state: State, request: Any) -> AsyncIterator[Any]:
    """``ImageJoinStreaming``: the end of the build."""
    image = state.images.get(request.image_id)
    if image is None:
        raise RefusalError("NOT_FOUND", f"Image {request.image_id} not found")
    fault = state.faults.draw("ImageBuild", {"text": image["reference"]})
    result = _generic(STATUSES.index("SUCCESS"))
    if fault is not None:
        words = fault.detail or "manifest unknown: the tag does not exist"
        result = _generic(STATUSES.index("FAILURE"), 1, words)
    yield api_pb2.ImageJoinStreamingResponse(result=result, eof=True)


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
        return api_pb2.SandboxGetTaskIdResponse(task_result=_result(sandbox))
    placed = sandbox.placed_at is not None
    return api_pb2.SandboxGetTaskIdResponse(task_id=sandbox.task_id if placed else "")


def _ran(sandbox: SimulatedSandbox) -> bool:
    return sandbox.behaviour.start_failure is None


def _result(sandbox: SimulatedSandbox) -> api_pb2.GenericResult:
    end = sandbox.end
    return _generic() if end is None else _generic(end.status, end.exit_code, end.message)


def _generic(status: int = 0, exit_code: int = 0, message: str = "") -> api_pb2.GenericResult:
    # Numbers that no client has heard of travel as well as any.
    fields: dict[str, Any] = {"status": status, "exitcode": exit_code, "exception": message}
    return api_pb2.GenericResult(**fields)


async def wait(state: State, request: Any) -> api_pb2.SandboxWaitResponse:
    """``SandboxWait``: holds for ``timeout`` seconds unless it ends before."""
    deadline = asyncio.get_running_loop().time() + request.timeout
    while True:
        sandbox = state.model.get(request.sandbox_id, state.clock.now())
        is_late = asyncio.get_running_loop().time() >= deadline or state.closing.is_set()
        if sandbox.end is not None or is_late:
            metadata = api_pb2.SandboxHandleMetadata(
                app_id=sandbox.wish.app_id, result=_result(sandbox)
            )
            return api_pb2.SandboxWaitResponse(result=_result(sandbox), metadata=metadata)
        await state.pause(POLL_SECONDS)


async def terminate(state: State, request: Any) -> api_pb2.SandboxTerminateResponse:
    """``SandboxTerminate``: does nothing to what has ended."""
    now = state.clock.now()
    sandbox = state.model.get(request.sandbox_id, now)
    before = _result(sandbox)
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
    result = _result(sandbox) if strange is None else _generic(strange)
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
        timeout = _generic(STATUSES.index("TIMEOUT"))
        return api_pb2.SandboxGetTunnelsResponse(result=timeout)
    ports = sandbox.wish.definition.open_ports.ports
    success = _generic(STATUSES.index("SUCCESS"))
    return api_pb2.SandboxGetTunnelsResponse(
        result=success, tunnels=[_tunnel(sandbox, each) for each in ports]
    )


def _tunnel(sandbox: SimulatedSandbox, port: Any) -> api_pb2.TunnelData:
    host = f"{sandbox.id.lower()}-{port.port}.{TUNNEL_DOMAIN}"
    plain = {"unencrypted_host": f"r1.{TUNNEL_DOMAIN}", "unencrypted_port": 30_000 + port.port}
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


async def router_access(state: State, request: Any) -> api_pb2.TaskGetCommandRouterAccessResponse:
    """``TaskGetCommandRouterAccess``: the router is this very server."""
    return api_pb2.TaskGetCommandRouterAccessResponse(url=state.url, jwt=_token())


async def sandbox_router_access(
    state: State, request: Any
) -> api_pb2.SandboxGetCommandRouterAccessResponse:
    """``SandboxGetCommandRouterAccess``."""
    return api_pb2.SandboxGetCommandRouterAccessResponse(url=state.url, jwt=_token())


async def count_logs(state: State, request: Any) -> api_pb2.AppCountLogsResponse:
    """``AppCountLogs``: one bucket for all of it will do."""
    found = _lines(state, request)
    answer = api_pb2.AppCountLogsResponse(app_id=request.app_id)
    if found:
        bucket = answer.buckets.add(stdout_logs=len(found))
        bucket.bucket_start_at.FromNanoseconds(int(found[0][0] * 1e9))
        late = answer.buckets.add(stdout_logs=0)
        late.bucket_start_at.FromNanoseconds(int(found[-1][0] * 1e9))
        late.stdout_logs = 1
    return answer


async def fetch_logs(state: State, request: Any) -> api_pb2.AppFetchLogsResponse:
    """``AppFetchLogs``: the newest ``limit`` of a stretch of time, in order."""
    found = _lines(state, request)[-(request.limit or MOST_LINES) :]
    batch = api_pb2.TaskLogsBatch(task_id=request.task_id, items=logs(found))
    return api_pb2.AppFetchLogsResponse(batches=[batch] if found else [])


def _lines(state: State, request: Any) -> list[tuple[float, str, str]]:
    now = state.clock.now()
    since, until = (m.ToNanoseconds() / 1e9 for m in (request.since, request.until))
    for each in state.model.sandboxes.values():
        if request.task_id == each.task_id and not each.gone:
            state.model.settle(now)
            return [
                line
                for line in printed(each, now)
                if since <= line[0] + 1e-6
                and line[0] <= until
                and request.source in (0, SOURCES[line[1]])
            ]
    return []


async def rates(state: State, request: Any) -> api_pb2.WorkspaceBillingRatesResponse:
    """``WorkspaceBillingRates``: by the second, as the price page has them."""
    table = {f"gpu_{name}": f"{rate:.6f}" for name, rate in GPU_USD_PER_SECOND.items()}
    return api_pb2.WorkspaceBillingRatesResponse(rates=table)


async def workspace(state: State, request: Any) -> api_pb2.WorkspaceNameLookupResponse:
    """``WorkspaceNameLookup``."""
    return api_pb2.WorkspaceNameLookupResponse(username="simulated")


_SANDBOX: Mapping[str, Work] = {
    "SandboxCreate": create_sandbox,
    "SandboxGetTaskId": get_task_id,
    "SandboxWait": wait,
    "SandboxTerminate": terminate,
    "SandboxList": list_sandboxes,
    "SandboxGetTunnels": tunnels,
    "SandboxTagsGet": get_tags,
    "SandboxGetFromName": by_name,
}
UNARY: Mapping[str, Work] = {
    **_SANDBOX,
    **{f"{name}V2": work for name, work in _SANDBOX.items()},
    "ClientHello": hello,
    "AppGetOrCreate": get_app,
    "EnvironmentGetOrCreate": get_environment,
    "AuthTokenGet": get_token,
    "SecretGetOrCreate": get_secret,
    "VolumeGetOrCreate": get_volume,
    "ImageGetOrCreate": get_image,
    "TaskGetCommandRouterAccess": router_access,
    "SandboxGetCommandRouterAccess": sandbox_router_access,
    "AppCountLogs": count_logs,
    "AppFetchLogs": fetch_logs,
    "WorkspaceBillingRates": rates,
    "WorkspaceNameLookup": workspace,
}
STREAMED: Mapping[str, StreamedWork] = {"ImageJoinStreaming": build_image}
"""Every call served, by its name."""
