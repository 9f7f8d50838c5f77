"""Attaching to a container: what it prints from now on, out of its log.

RunPod gives containers neither standard input nor a terminal, and merges both outputs, so there is
nothing to type into and all of it comes as output.
Fed by ``streams``; reads through ``logs``.
"""

from __future__ import annotations

from contextlib import aclosing

from vk_provider.faults import InstanceNotFoundError, NotSupportedError
from vk_provider.pods.types import InstanceRef, LogOptions
from vk_provider.sessions import write_in_chunks
from vk_provider.streams import AttachRequest, ContainerIO
from vk_provider_runpod.client import RunPodClient
from vk_provider_runpod.logs import read_logs
from vk_provider_runpod.stamp import read_mark


async def attach(
    client: RunPodClient, ref: InstanceRef, request: AttachRequest, io: ContainerIO
) -> None:
    """Hand on what is printed until the container has ended or the caller is gone."""
    pod = await client.get_pod(ref.id)
    mark = read_mark(pod) if pod is not None else None
    if mark is None or mark.container != request.container:
        words = f'RunPod has no container "{request.container}" of instance {ref.id}'
        raise InstanceNotFoundError(words)
    if request.stdin:
        raise NotSupportedError(
            "RunPod gives containers no standard input: attach without -i shows their output, "
            "and kubectl exec -i runs a shell beside them"
        )
    options = LogOptions(follow=True, tail_lines=0)
    async with aclosing(read_logs(client, ref.id, options)) as lines:
        async for line in lines:
            if request.stdout:
                await write_in_chunks(io.write_stdout, line.text + b"\n")
