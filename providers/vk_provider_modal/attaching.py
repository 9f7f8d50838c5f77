"""Attaching to a sandbox: what it prints from now on, out of its log.

The SDK numbers what it writes to a sandbox's standard input anew with each connection, so that a
second client's first words would be taken for the first one's: there is no input.
Fed by ``provider.attach``; reads through ``logs`` and ``workspace``.
"""

from __future__ import annotations

from contextlib import aclosing

from vk_provider.faults import InstanceNotFoundError, NotSupportedError
from vk_provider.pods.types import LogOptions
from vk_provider.sessions import write_in_chunks
from vk_provider.streams import AttachRequest, ContainerIO
from vk_provider_modal.logs import Seen, new_pieces
from vk_provider_modal.observe import own_exit_code
from vk_provider_modal.workspace import Workspace

MOST_SAID_BEFORE = 100
"""So much of what was said before is read to know what is new, whatever the clocks say."""
NO_INPUT = (
    "Modal's sandboxes take no standard input from several clients: attach without -i shows the "
    "output, and kubectl exec -i runs a command beside the container's own"
)


async def attach(
    workspace: Workspace, sandbox_id: str, request: AttachRequest, io: ContainerIO
) -> int | None:
    """Hand on what is printed until the container has ended; its exit code where it is known."""
    if request.stdin:
        raise NotSupportedError(NO_INPUT)
    seen = Seen()
    before = LogOptions(tail_lines=MOST_SAID_BEFORE)
    async with aclosing(new_pieces(workspace, sandbox_id, before, seen)) as pieces:
        async for _ in pieces:
            pass
    following = LogOptions(follow=True)
    async with aclosing(new_pieces(workspace, sandbox_id, following, seen)) as pieces:
        async for piece in pieces:
            write = io.write_stdout if piece.source == "stdout" else io.write_stderr
            if request.stdout if piece.source == "stdout" else request.stderr:
                await write_in_chunks(write, piece.text.encode())
    try:
        return own_exit_code(await workspace.result_of(sandbox_id))
    except InstanceNotFoundError:
        return None
