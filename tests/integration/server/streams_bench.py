"""What the tests of streams stand on: a provider that does what the test says, and raw clients.

The SPDY client writes frames itself, so that nothing of ours judges what is on the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.integration.server.bench import LoggingBackend, client_context
from tests.integration.server.conftest import Stage
from tests.unit.wire.peer import FIN, Peer, data, rst, sent
from vk_provider.faults import UnavailableError
from vk_provider.pods.types import InstanceRef
from vk_provider.streams import AttachRequest, ContainerIO, ExecRequest, PortConnection

V4 = "v4.channel.k8s.io"
V5 = "v5.channel.k8s.io"
PORT_FORWARD = "portforward.k8s.io"

Program = Callable[[ContainerIO], Awaitable[int]]


async def nothing(_io: ContainerIO) -> int:
    """A command that ends at once."""
    return 0


class StreamingBackend(LoggingBackend):
    """A provider whose command is a coroutine of the test, and whose ports echo."""

    def __init__(self, program: Program = nothing) -> None:
        super().__init__()
        self.program = program
        self.requests: list[ExecRequest | AttachRequest] = []
        self.running = 0
        self.cancelled = 0
        self.ports: list[EchoPort] = []

    async def exec(self, ref: InstanceRef, request: ExecRequest, io: ContainerIO) -> int:
        """Run the program."""
        return await self._run(request, io)

    async def attach(self, ref: InstanceRef, request: AttachRequest, io: ContainerIO) -> int | None:
        """Run the program."""
        return await self._run(request, io)

    async def open_port(self, ref: InstanceRef, port: int) -> PortConnection:
        """A port that echoes; port 1 refuses, port 2 hangs up at once, port 3 never answers."""
        if port == 1:
            raise UnavailableError("connection refused")
        if port == 3:
            await asyncio.Event().wait()
        self.ports.append(EchoPort(ended=port == 2))
        return self.ports[-1]

    async def _run(self, request: ExecRequest | AttachRequest, io: ContainerIO) -> int:
        self.requests.append(request)
        self.running += 1
        try:
            return await self.program(io)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1


@dataclass
class EchoPort:
    """A connection that gives back what it gets, in upper case; a write waits for a read."""

    ended: bool = False
    closed: bool = False
    eof: bool = False
    queue: asyncio.Queue[bytes] = field(default_factory=lambda: asyncio.Queue(4))

    async def read(self) -> bytes:
        """What was written."""
        if self.ended:
            return b""
        return await self.queue.get()

    async def write(self, chunk: bytes) -> None:
        """Give it back; a hang-up if the port has ended."""
        if self.ended:
            raise UnavailableError("broken pipe")
        await self.queue.put(chunk.upper())

    async def write_eof(self) -> None:
        """The echo ends, too."""
        self.eof = True
        await self.queue.put(b"")

    async def close(self) -> None:
        """Note it."""
        self.closed = True


class SpdyClient:
    """A client on a raw TLS connection, after its upgrade."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.head = head
        self.peer = Peer()
        self.ids: dict[str, int] = {}
        self.seen: list[tuple[Any, ...]] = []

    async def open(self, *types: str, **headers: str) -> None:
        """Open streams one after the other, each once the last one was answered."""
        for kind in types:
            number = 2 * len(self.ids) + 1
            name = kind + headers.get("requestID", "")
            self.ids[name] = number
            self.write(self.peer.syn(number, 0, streamtype=kind, **_lower(headers)))
            await self.until(("REPLY", number).__eq__)

    def write(self, raw: bytes) -> None:
        """Bytes as they are."""
        self.writer.write(raw)

    def send(self, name: str, payload: bytes = b"", *, fin: bool = False) -> None:
        """DATA on a stream."""
        self.write(data(self.ids[name], payload, FIN if fin else 0))

    def reset(self, name: str) -> None:
        """Tear a stream down."""
        self.write(rst(self.ids[name]))

    async def frame(self) -> tuple[Any, ...] | None:
        """The next frame; None at the end of the connection."""
        try:
            header = await self.reader.readexactly(8)
            body = await self.reader.readexactly(int.from_bytes(header[5:8], "big"))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        (frame,) = sent(header + body)
        self.seen.append(frame)
        return frame

    async def until(self, holds: Callable[[tuple[Any, ...]], bool]) -> tuple[Any, ...]:
        """Read on until a frame is such."""
        async with asyncio.timeout(10):
            while (frame := await self.frame()) is not None:
                if holds(frame):
                    return frame
        raise AssertionError(f"the connection ended: {self.seen}")

    async def ended(self, name: str) -> bytes:
        """Read until a stream has ended; all its data so far."""
        number = self.ids[name]
        if ("FIN", number) not in self.fins():
            await self.until(lambda frame: frame[:2] == ("DATA", number) and frame[3])
        return self.received(name)

    def fins(self) -> list[tuple[str, int]]:
        """The streams that have ended, in order."""
        return [("FIN", frame[1]) for frame in self.seen if frame[0] == "DATA" and frame[3]]

    def received(self, name: str) -> bytes:
        """The data of a stream so far."""
        number = self.ids[name]
        return b"".join(frame[2] for frame in self.seen if frame[:2] == ("DATA", number))

    async def until_end(self) -> list[tuple[Any, ...]]:
        """Read to the end of the connection; what DATA with content came on the way."""
        seen = len(self.seen)
        async with asyncio.timeout(10):
            while await self.frame() is not None:
                pass
        return [frame for frame in self.seen[seen:] if frame[0] == "DATA" and frame[2]]

    async def close(self) -> None:
        """Hang up."""
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


def _lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


async def raw(stage: Stage) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A TLS connection as the administrator."""
    pair = stage.authority.client(stage.folder, "admin", "admins")
    context = client_context(None, pair)
    return await asyncio.open_connection("127.0.0.1", stage.port, ssl=context)


async def ask(
    stage: Stage, path: str, lines: Sequence[str], method: str = "POST"
) -> tuple[str, asyncio.StreamReader, asyncio.StreamWriter]:
    """Send a request of these header lines; the head of the answer, and the connection."""
    reader, writer = await raw(stage)
    head = [f"{method} {path} HTTP/1.1", "Host: node", *lines]
    writer.write("\r\n".join([*head, "", ""]).encode())
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    return answer.decode(), reader, writer


def upgrade_lines(*protocols: str) -> list[str]:
    """What client-go sends for SPDY."""
    wanted = [f"X-Stream-Protocol-Version: {protocol}" for protocol in protocols]
    return ["Connection: Upgrade", "Upgrade: SPDY/3.1", "Content-Length: 0", *wanted]


@contextlib.asynccontextmanager
async def spdy(
    stage: Stage, path: str, *protocols: str, method: str = "POST"
) -> AsyncIterator[SpdyClient]:
    """A client whose request was upgraded."""
    lines = upgrade_lines(*(protocols or (V5, V4)))
    head, reader, writer = await ask(stage, path, lines, method)
    assert head.startswith("HTTP/1.1 101 "), head + (await reader.read(2000)).decode()
    client = SpdyClient(reader, writer, head)
    yield client
    await client.close()


@contextlib.asynccontextmanager
async def websocket(
    stage: Stage, path: str, *protocols: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse[bool]]:
    """A WebSocket as the administrator."""
    pair = stage.authority.client(stage.folder, "admin", "admins")
    connector = aiohttp.TCPConnector(ssl=client_context(None, pair))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.ws_connect(
            f"https://127.0.0.1:{stage.port}{path}", protocols=protocols, max_msg_size=0
        ) as socket,
    ):
        yield socket
