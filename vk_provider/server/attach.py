"""``/attach/{namespace}/{pod}/[{uid}/]{container}``: ``kubectl attach`` and ``kubectl run -i``.

A kubelet never tells an attached client the exit code: kubectl reads it from the pod's status.
Fed by the lookup; feeds a provider's ``attach``.
"""

from __future__ import annotations

from aiohttp import web

from vk_provider.faults import NotSupportedError, ProviderError
from vk_provider.log import scrub
from vk_provider.provider import SupportsAttach
from vk_provider.server.containers import container_spec
from vk_provider.server.limits import Endpoint
from vk_provider.server.remote_command import Work
from vk_provider.server.streaming import Streams, serve_command
from vk_provider.server.targets import (
    Instance,
    StreamRefusedError,
    find_pod,
    running_container,
)
from vk_provider.streams import AttachRequest, ContainerIO
from vk_provider.wire.outcome import SUCCESS, Failed, Outcome
from vk_provider.wire.remote_command import parse_stream_options


def attach_endpoint(streams: Streams) -> Endpoint:
    """The endpoint of a container's own streams."""

    async def answer(request: web.Request) -> web.StreamResponse:
        options = parse_stream_options(request.query)
        served, container = find_pod(streams.lookup, request), request.match_info["container"]
        instance = running_container(served, container)
        # Whether there is a terminal was settled when the container started.
        tty = (container_spec(served.pod, container) or {}).get("tty") is True
        asked = AttachRequest(
            container=container,
            stdin=options.stdin,
            stdout=options.stdout,
            stderr=options.stderr and not tty,
            tty=tty,
        )
        return await serve_command(request, options, _work(instance, asked), streams.times)

    return streams.endpoint(answer)


def _work(instance: Instance, asked: AttachRequest) -> Work:
    """How to attach. Raises StreamRefusedError if there is no way to."""
    provider = instance.provider
    if not isinstance(provider, SupportsAttach):
        raise StreamRefusedError(501, "this pod's backend can't attach to containers")

    async def work(io: ContainerIO) -> Outcome:
        try:
            await provider.attach(instance.ref, asked, io)
        except (ProviderError, NotSupportedError) as fault:
            return Failed(f"error attaching to container: {scrub(str(fault))}")
        return SUCCESS

    return work
