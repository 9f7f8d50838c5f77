"""What reads the streams: kubectl, and the Go program's own reader, cheap and the same for both.

Fed by `measure`; speaks to the API server alone. Answers in seconds and bytes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.streams.go_program import go_program
from benchmarks.streams.nodes import Side
from tests.rig.access import ADMIN_GROUP, kubectl_path
from tests.rig.control_plane import ControlPlane
from tests.rig.deathsig import die_with_parent

WEBSOCKET: Mapping[str, str] = {
    "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "true",
    "KUBECTL_PORT_FORWARD_WEBSOCKETS": "true",
}
SPDY: Mapping[str, str] = dict.fromkeys(WEBSOCKET, "false")
_LIMIT_SECONDS = 300.0
_READ_BYTES = 1 << 20


class ClientError(RuntimeError):
    """A client did not get what it asked for."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Seconds from a request to its first and its last byte, and the bytes."""

    first: float
    last: float
    bytes: int


class Clients:
    """Everybody who reads from one bed."""

    def __init__(self, bed: ControlPlane) -> None:
        self._bed = bed
        pair = bed.authority.issue("bench-streams", "bench", [ADMIN_GROUP])
        self._identity = ["-ca", str(bed.ca_file), "-pair", f"{pair.certificate},{pair.key}"]
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(bed.kubeconfig),
            "KUBECACHEDIR": str(bed.folder / "kubectl-cache"),
        }

    async def exec(
        self, side: Side, command: Sequence[str], *, times: int = 1, crowd: bool = False
    ) -> list[Stream]:
        """Run a command over WebSocket v5, one after another or all at once."""
        query = [("container", "main"), ("stdout", "true")]
        query += [("command", word) for word in command]
        flags = ["-times", str(times), *(["-crowd"] if crowd else [])]
        process = await self._start([*self._own("exec", side, query), *flags])
        answer = json.loads(await _output(process, "exec"))
        return [Stream(**each) for each in answer]

    async def follow(self, side: Side) -> Stream:
        """Follow the log, let the container write, and read to the last line."""
        query = [("follow", "true"), ("tailLines", "1"), ("container", "main")]
        process = await self._start(self._own("log", side, query))
        assert process.stdout is not None
        if await process.stdout.readline() != b"ready\n":
            await _output(process, "log")
        side.flag.touch()
        return Stream(**json.loads(await _output(process, "log")))

    async def kubectl_exec(
        self, side: Side, command: Sequence[str], protocol: Mapping[str, str]
    ) -> float:
        """`kubectl exec` to nowhere; the seconds from its start to its end."""
        begun = time.monotonic()
        argv = [kubectl_path(), "exec", side.pod, "--", *command]
        process = await self._start(argv, protocol, asyncio.subprocess.DEVNULL)
        await _output(process, "kubectl exec")
        return time.monotonic() - begun

    async def kubectl_download(self, side: Side, port: int, protocol: Mapping[str, str]) -> Stream:
        """Read one connection through `kubectl port-forward` to its end."""
        async with self._forwarded(side, port, protocol) as local:
            return await asyncio.to_thread(_download, local)

    @asynccontextmanager
    async def _forwarded(
        self, side: Side, port: int, protocol: Mapping[str, str]
    ) -> AsyncIterator[int]:
        argv = [kubectl_path(), "port-forward", f"pod/{side.pod}", f":{port}"]
        process = await self._start(argv, protocol)
        assert process.stdout is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), _LIMIT_SECONDS)
            found = re.search(rb"127\.0\.0\.1:(\d+)", line)
            if found is None:
                raise ClientError(f"kubectl port-forward said {line!r}")
            yield int(found[1])
        finally:
            process.kill()
            await process.communicate()

    def _own(self, part: str, side: Side, query: Sequence[tuple[str, str]]) -> list[str | Path]:
        path = f"/api/v1/namespaces/default/pods/{side.pod}/{part}?{urlencode(query)}"
        own = {"log": "logs"}.get(part, part)
        return [go_program(), own, "-url", self._bed.url + path, *self._identity]

    async def _start(
        self,
        argv: Sequence[str | Path],
        more: Mapping[str, str] | None = None,
        stdout: int = asyncio.subprocess.PIPE,
    ) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *map(str, argv),
            env={**self._environment, **(more or {})},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout,
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=die_with_parent(),
        )


async def _output(process: asyncio.subprocess.Process, what: str) -> bytes:
    """What a client prints, at its end. Raises ClientError with its last words if it fails."""
    try:
        async with asyncio.timeout(_LIMIT_SECONDS):
            out, err = await process.communicate()
    except BaseException:
        process.kill()
        await process.communicate()
        raise
    if process.returncode != 0:
        raise ClientError(f"{what} ended with {process.returncode}: {err.decode()[-500:]}")
    return out or b""


def _download(port: int) -> Stream:
    begun, first, size = time.monotonic(), 0.0, 0
    buffer = bytearray(_READ_BYTES)
    with socket.create_connection(("127.0.0.1", port), _LIMIT_SECONDS) as connection:
        while count := connection.recv_into(buffer):
            first = first or time.monotonic() - begun
            size += count
    return Stream(first, time.monotonic() - begun, size)
