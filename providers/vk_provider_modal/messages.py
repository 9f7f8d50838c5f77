"""Modal's messages as facts: what a list and a result say, without the protocol's types.

Pure. Fed by ``client``; feeds everybody who must not know the protocol.
"""

from __future__ import annotations

from typing import Any

from grpclib import GRPCError
from modal_proto import api_pb2

from vk_provider_modal.facts import Costs, Result, Sandbox


def created_name(request: object) -> str:
    """The name of a sandbox that a request is about to make, empty for any other request."""
    if isinstance(request, api_pb2.SandboxCreateRequest | api_pb2.SandboxCreateV2Request):
        return request.definition.name
    return ""


def listed_sandbox(info: api_pb2.SandboxInfo) -> Sandbox:
    """One entry of a list."""
    return Sandbox(
        info.id,
        {tag.tag_name: tag.tag_value for tag in info.tags},
        name=info.name,
        created_at=info.created_at,
        started_at=info.task_info.started_at or info.ready_at,
        timeout_seconds=info.timeout_secs,
        result=ended_result(info.task_info.result),
        tunnels={tunnel.container_port: tunnel_address(tunnel) for tunnel in info.tunnels},
    )


def ended_result(result: api_pb2.GenericResult) -> Result:
    """How something ended, an empty result while it has not."""
    if not result.status:
        return Result()
    known = api_pb2.GenericResult.GenericStatus.values()
    name = (
        api_pb2.GenericResult.GenericStatus.Name(result.status).removeprefix("GENERIC_STATUS_")
        if result.status in known
        else f"status {result.status}"
    )
    return Result(name, result.exitcode, result.exception)


def tunnel_address(tunnel: Any) -> str:
    """Where a port is reached: host and port for plain TCP, a URL otherwise."""
    if tunnel.unencrypted_host:
        return f"{tunnel.unencrypted_host}:{tunnel.unencrypted_port}"
    return f"https://{tunnel.host}" + ("" if tunnel.port == 443 else f":{tunnel.port}")


def cost_request(question: Costs) -> api_pb2.SandboxGetTimeRangeStatsRequest:
    """What the service is asked for a bill."""
    request = api_pb2.SandboxGetTimeRangeStatsRequest(group_by_tags=[question.group_by])
    request.since.FromDatetime(question.since)
    if question.until is not None:
        request.until.FromDatetime(question.until)
    return request


def group_costs(page: api_pb2.SandboxGetTimeRangeStatsResponse, group_by: str) -> dict[str, float]:
    """Tag -> USD, without those that carry no such tag."""
    found: dict[str, float] = {}
    for group in page.groups:
        tag = group.tags[group_by].value if group_by in group.tags else ""
        if tag:
            found[tag] = float(group.cost_str or group.cost)
    return found


def terminal_info(columns: int, rows: int) -> api_pb2.PTYInfo:
    """A terminal of this size."""
    return api_pb2.PTYInfo(
        enabled=True,
        winsz_rows=rows,
        winsz_cols=columns,
        env_term="xterm-256color",
        pty_type=api_pb2.PTYInfo.PTY_TYPE_SHELL,
        no_terminate_on_idle_stdin=True,
    )


def failure_words(error: BaseException) -> str:
    """What a failure says, in one piece."""
    # The SDK's own exceptions are GRPCErrors as well, for now, and warn whoever relies on it.
    if type(error) is GRPCError:
        return f"{error.status.name}: {error.message or 'no details'}"
    return str(error) or type(error).__name__


def retry_after(error: BaseException) -> float | None:
    """The service's wish how long to wait, where it has one."""
    for detail in getattr(error, "_grpc_details", None) or ():
        if isinstance(detail, api_pb2.RPCRetryPolicy):
            return float(detail.retry_after_secs)
    return None
