"""What flows between the kubelet's streaming endpoints and a provider: values and protocols.

The server owns the wire (SPDY or WebSocket), the provider owns the backend; between them stand
plain byte chunks with back-pressure: a write returns when the other side has room again.
Fed by ``server``; implemented on one side by the server, on the other by providers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from vk_provider.pods.types import InstanceRef
from vk_provider.pods.usage import ContainerStats as ContainerStats
from vk_provider.pods.usage import InstanceStats as InstanceStats

CHUNK_BYTES = 64 * 1024
"""Nobody hands on more at once; a stream never holds more than a few of these."""
LONGEST_LINE_BYTES = 256 * 1024
"""A longer line of a log is handed on in pieces: a container need never end one."""


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """Columns and rows of the client's terminal."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """A command to be run in a container. The flags say which streams the client opened; with
    ``tty`` there is one terminal, and stderr is part of stdout."""

    container: str
    command: tuple[str, ...]
    stdin: bool = False
    stdout: bool = True
    stderr: bool = True
    tty: bool = False


@dataclass(frozen=True, slots=True)
class AttachRequest:
    """The streams of a container's own process."""

    container: str
    stdin: bool = False
    stdout: bool = True
    stderr: bool = True
    tty: bool = False


class ContainerIO(Protocol):
    """The client's side of an exec or attach, as the provider sees it."""

    def stdin(self) -> AsyncIterator[bytes]:
        """What the client types or sends; ends when it closes its side (half-close). At most
        CHUNK_BYTES each. Empty when no stdin was opened."""

    async def write_stdout(self, chunk: bytes) -> None:
        """Hand on output; returns when there is room again."""

    async def write_stderr(self, chunk: bytes) -> None:
        """Hand on error output; returns when there is room again."""

    def resizes(self) -> AsyncIterator[TerminalSize]:
        """The terminal's size, whenever it changes; the first one at once if it is known."""


class PortConnection(Protocol):
    """One connection to a port of an instance, opened by the provider."""

    async def read(self) -> bytes:
        """Up to CHUNK_BYTES; empty when the far side has closed its direction."""

    async def write(self, chunk: bytes) -> None:
        """Send; returns when there is room again."""

    async def write_eof(self) -> None:
        """Close our direction; reading goes on."""

    async def close(self) -> None:
        """End it. Idempotent."""


@runtime_checkable
class SupportsExec(Protocol):
    """The backend can run a command in a container."""

    async def exec(self, ref: InstanceRef, request: ExecRequest, io: ContainerIO) -> int:
        """Run it to its end; its exit code (128 + N for a signal N). Cancelled when the client is
        gone: the remote command must then end too.

        Raises:
            InstanceNotFoundError, UnavailableError, NotSupportedError (with a sentence).
        """


@runtime_checkable
class SupportsAttach(Protocol):
    """The backend can connect to a container's own streams."""

    async def attach(self, ref: InstanceRef, request: AttachRequest, io: ContainerIO) -> int | None:
        """Until the container ends or the client is gone (cancelled); the exit code if it is
        known. The container lives on when the client leaves. Raises as ``exec``."""


@runtime_checkable
class SupportsPortForward(Protocol):
    """The backend can open a TCP connection to a port of an instance."""

    async def open_port(self, ref: InstanceRef, port: int) -> PortConnection:
        """One connection. Raises InstanceNotFoundError, UnavailableError (nobody listens)."""


@runtime_checkable
class SupportsStats(Protocol):
    """The backend measures usage."""

    async def read_stats(self) -> tuple[InstanceStats, ...]:
        """Of all our instances, in one logical call; what is not measured is absent."""
