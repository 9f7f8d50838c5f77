"""``/exec/{namespace}/{pod}/[{uid}/]{container}``: what ``kubectl exec`` and ``kubectl cp`` use.

Fed by the lookup; feeds a provider's ``exec``.
"""

from __future__ import annotations

from aiohttp import web

from vk_provider.faults import NotSupportedError, ProviderError
from vk_provider.log import scrub
from vk_provider.provider import SupportsExec
from vk_provider.server.limits import Endpoint
from vk_provider.server.remote_command import Work
from vk_provider.server.streaming import Streams, serve_command
from vk_provider.server.targets import (
    Instance,
    StreamRefusedError,
    find_pod,
    running_container,
)
from vk_provider.streams import ContainerIO, ExecRequest
from vk_provider.wire.outcome import Exited, Failed, Outcome
from vk_provider.wire.remote_command import parse_stream_options


def exec_endpoint(streams: Streams) -> Endpoint:
    """The endpoint of commands."""

    async def answer(request: web.Request) -> web.StreamResponse:
        options = parse_stream_options(request.query)
        served, container = find_pod(streams.lookup, request), request.match_info["container"]
        instance = running_container(served, container)
        asked = ExecRequest(
            container=container,
            command=tuple(request.query.getall("command", [])),
            stdin=options.stdin,
            stdout=options.stdout,
            stderr=options.stderr,
            tty=options.tty,
        )
        return await serve_command(request, options, _work(instance, asked), streams.times)

    return streams.endpoint(answer)


def _work(instance: Instance, asked: ExecRequest) -> Work:
    """How to run it. Raises StreamRefusedError if there is nothing to run, or no way to."""
    provider = instance.provider
    if not isinstance(provider, SupportsExec):
        raise StreamRefusedError(501, "this pod's backend can't run commands in containers")
    if not asked.command:
        raise StreamRefusedError(400, 'query parameter "command" is required')

    async def work(io: ContainerIO) -> Outcome:
        try:
            code = await provider.exec(instance.ref, asked, io)
        except (ProviderError, NotSupportedError) as fault:
            return Failed(f"error executing command in container: {scrub(str(fault))}")
        return Exited(code, asked.command)

    return work
