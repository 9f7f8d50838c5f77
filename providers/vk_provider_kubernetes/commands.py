"""exec and attach in the other cluster: one WebSocket, each message begins with its channel.

Both directions run side by side, and each waits for its own reader: nothing piles up here. The
protocol is v5, which can close stdin alone; v4 where an older API server knows no better.
Fed by ``provider``; speaks through ``upstream``.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import orjson

from vk_provider.faults import UnavailableError
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import Json
from vk_provider.streams import CHUNK_BYTES, AttachRequest, ContainerIO, ExecRequest
from vk_provider_kubernetes.upstream import Query, Upstream

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, STATUS, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
MESSAGE_BYTES = 32 * 1024
_FLAGS = ("stdin", "stdout", "stderr", "tty")


def query_of(request: ExecRequest | AttachRequest) -> Query:
    """The parameters that say what is asked for."""
    flags = [(name, "true") for name in _FLAGS if getattr(request, name)]
    if request.tty:
        flags = [flag for flag in flags if flag[0] != "stderr"]  # it is part of stdout
    words = [("command", word) for word in getattr(request, "command", ())]
    return [("container", request.container), *flags, *words]


async def converse(
    upstream: Upstream, path: str, request: ExecRequest | AttachRequest, io: ContainerIO
) -> int | None:
    """Until the far side says how it ended: an exit code, or None where it names none."""
    async with upstream.websocket(path, query_of(request), PROTOCOLS) as socket:
        pumps = [asyncio.create_task(_resizes(socket, io))]
        if request.stdin:
            pumps.append(asyncio.create_task(_stdin(socket, io)))
        try:
            return await _outputs(socket, io)
        finally:
            await _ended(pumps)


async def _outputs(socket: aiohttp.ClientWebSocketResponse, io: ContainerIO) -> int | None:
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        channel, payload = message.data[0], message.data[1:]
        if channel == STATUS and payload:
            return exit_code(orjson.loads(payload))
        for begin in range(0, len(payload), CHUNK_BYTES):
            await _written(io, channel, payload[begin : begin + CHUNK_BYTES])
    raise UnavailableError(f"the stream broke ({socket.close_code}) before it told an outcome")


async def _written(io: ContainerIO, channel: int, chunk: bytes) -> None:
    if channel == STDOUT:
        await io.write_stdout(chunk)
    elif channel == STDERR:
        await io.write_stderr(chunk)


def exit_code(status: Json) -> int | None:
    """The code in a Status; None for a success without one. Raises ``UnavailableError`` for a
    command that could not be run, in the other cluster's words."""
    if text(status, "status") == "Success":
        return None
    if text(status, "reason") == "NonZeroExitCode":
        for _, cause in mappings(mapping(status, "details"), "causes"):
            word = text(cause, "message")
            if text(cause, "reason") == "ExitCode" and word.isdecimal():
                return int(word)
    raise UnavailableError(text(status, "message") or "it failed, and nobody says why")


async def _stdin(socket: aiohttp.ClientWebSocketResponse, io: ContainerIO) -> None:
    async for chunk in io.stdin():
        for begin in range(0, len(chunk), MESSAGE_BYTES):
            await socket.send_bytes(bytes([STDIN]) + chunk[begin : begin + MESSAGE_BYTES])
    if socket.protocol == PROTOCOLS[0]:
        await socket.send_bytes(bytes([CLOSE, STDIN]))


async def _resizes(socket: aiohttp.ClientWebSocketResponse, io: ContainerIO) -> None:
    async for size in io.resizes():
        words = orjson.dumps({"Width": size.width, "Height": size.height})
        await socket.send_bytes(bytes([RESIZE]) + words)


async def _ended(pumps: list[asyncio.Task[None]]) -> None:
    """What the client still sends is of no use any more."""
    for pump in pumps:
        pump.cancel()
    for pump in pumps:
        with suppress(asyncio.CancelledError, aiohttp.ClientError, OSError):
            await pump
