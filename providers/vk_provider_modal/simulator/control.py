"""The control plane's calls but for sandboxes: Apps, Secrets, Volumes, images, output.

Each function takes the workspace and one request and gives the answer.
Fed by ``service``; rests on ``sandboxes``.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from modal_proto import api_pb2

from vk_provider_modal.simulator.bill import costs, rates
from vk_provider_modal.simulator.lines import MOST_LINES, SOURCES, logs, printed
from vk_provider_modal.simulator.model import (
    STATUSES,
    RefusalError,
)
from vk_provider_modal.simulator.results import generic
from vk_provider_modal.simulator.sandboxes import SANDBOX
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
        secret_id=secret_id, metadata=api_pb2.SecretMetadata(keys=list(request.env_dict))
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
    result = generic(STATUSES.index("SUCCESS"))
    if fault is not None:
        words = fault.detail or "manifest unknown: the tag does not exist"
        result = generic(STATUSES.index("FAILURE"), 1, words)
    yield api_pb2.ImageJoinStreamingResponse(result=result, eof=True)


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


async def router_access(state: State, request: Any) -> api_pb2.TaskGetCommandRouterAccessResponse:
    """``TaskGetCommandRouterAccess``: the router is this very server."""
    return api_pb2.TaskGetCommandRouterAccessResponse(url=state.url, jwt=_token())


async def sandbox_router_access(
    state: State, request: Any
) -> api_pb2.SandboxGetCommandRouterAccessResponse:
    """``SandboxGetCommandRouterAccess``."""
    return api_pb2.SandboxGetCommandRouterAccessResponse(url=state.url, jwt=_token())


async def workspace(state: State, request: Any) -> api_pb2.WorkspaceNameLookupResponse:
    """``WorkspaceNameLookup``."""
    return api_pb2.WorkspaceNameLookupResponse(username="simulated")


UNARY: Mapping[str, Work] = {
    **SANDBOX,
    **{f"{name}V2": work for name, work in SANDBOX.items()},
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
    "SandboxGetTimeRangeStats": costs,
    "WorkspaceNameLookup": workspace,
}
STREAMED: Mapping[str, StreamedWork] = {"ImageJoinStreaming": build_image}
"""Every call served, by its name."""
