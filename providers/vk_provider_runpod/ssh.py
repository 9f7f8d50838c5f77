"""SSH connections to instances: one per instance as a rule, shared by all that goes on there.

An instance's host key is believed when it is first seen, and from then on it alone, as long as the
instance lives. A connection that nobody uses is closed after a while.
Fed by ``streams`` with what is wanted of which instance; asks ``client`` where it listens.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncssh

from vk_provider.faults import (
    DeniedError,
    InstanceNotFoundError,
    NotSupportedError,
    UnavailableError,
)
from vk_provider.pods.types import InstanceRef, Json
from vk_provider_runpod.config import SshConfig
from vk_provider_runpod.ssh_access import SshTarget, target_of
from vk_provider_runpod.stamp import read_mark

MOST_SESSIONS = 8
"""On one connection: OpenSSH allows ten by default, and ending a command takes one more."""
KEEPALIVE_SECONDS = 20.0
_DIALS = 4

# It tells at each connection who we are and whom we talk to; that is the API server's audit log's.
logging.getLogger("asyncssh").setLevel(logging.WARNING)

Locate = Callable[[str], Awaitable[Json | None]]
"""A pod of RunPod's by its id, None where there is none."""


class KeyPair:
    """Our key, read anew for every connection and instance, so that a rotated one is used."""

    def __init__(self, read: Callable[[], Awaitable[str]]) -> None:
        self._read = read

    async def private(self) -> asyncssh.SSHKey:
        """The key itself. Raises ``DeniedError``."""
        try:
            return asyncssh.import_private_key(await self._read())
        except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError) as error:
            why = "it is no SSH key; allowed: a private key as ssh-keygen makes it"
            if "assphrase" in str(error):
                why = "it has a passphrase, which nobody is there to type"
        # The original could quote the key, so it is not chained.
        raise DeniedError(f"ssh.privateKey can't be used: {why}") from None

    async def public(self) -> str:
        """What an instance is told, in one line. Raises ``DeniedError``."""
        exported = (await self.private()).export_public_key("openssh").decode()
        return f"{' '.join(exported.split()[:2])} vk-provider"


@dataclass(slots=True, eq=False)
class Line:
    """One connection and what runs on it."""

    connection: asyncssh.SSHClientConnection
    sessions: int = 0
    tunnels: int = 0
    most_sessions: int = MOST_SESSIONS
    idle: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether it can be used."""
        return not self.connection.is_closed()

    def close(self) -> None:
        """Let go of it. Idempotent."""
        if self.idle is not None:
            self.idle.cancel()
        self.connection.abort()


@dataclass(slots=True)
class _Lines:
    """All connections to one instance, with what is known of it since the first: its host key
    and the name of its container."""

    open: list[Line] = field(default_factory=list)
    dialling: asyncio.Lock = field(default_factory=asyncio.Lock)
    pinned: str | None = None
    container: str | None = None


class Connections:
    """To the instances of one account. Close it with :meth:`close`."""

    def __init__(self, config: SshConfig, keys: KeyPair, locate: Locate) -> None:
        self._config = config
        self._keys = keys
        self._locate = locate
        self._known: dict[str, _Lines] = {}
        self._absent: set[str] = set()
        self._dials = asyncio.Semaphore(_DIALS)

    @asynccontextmanager
    async def process(
        self, ref: InstanceRef, container: str, command: str, **options: Any
    ) -> AsyncIterator[asyncssh.SSHClientProcess[bytes]]:
        """A command that runs; its channel is closed after the block."""
        line, process = await self._start(ref, container, command, options)
        try:
            yield process
        finally:
            process.close()
            line.sessions -= 1
            self._rest(line)

    async def _start(
        self, ref: InstanceRef, container: str, command: str, options: Mapping[str, Any]
    ) -> tuple[Line, asyncssh.SSHClientProcess[bytes]]:
        while True:
            line = await self._take(ref, container)
            line.sessions += 1
            process: asyncssh.SSHClientProcess[bytes] | None = None
            try:
                with spoken(ref):
                    process = await line.connection.create_process(
                        command, encoding=None, **options
                    )
            except UnavailableError as fault:
                if not isinstance(fault.__cause__, asyncssh.ChannelOpenError) or line.sessions < 2:
                    raise
                # Its server allows fewer at a time: what is there is what it allows.
                line.most_sessions = line.sessions - 1
            finally:
                if process is None:
                    line.sessions -= 1
                    self._rest(line)
            if process is not None:
                return line, process

    @asynccontextmanager
    async def tunnel(self, ref: InstanceRef) -> AsyncIterator[asyncssh.SSHClientConnection]:
        """A connection that ports are reached through while the block runs."""
        line = await self._take(ref, None)
        line.tunnels += 1
        try:
            yield line.connection
        finally:
            line.tunnels -= 1
            self._rest(line)

    def keep(self, ids: Collection[str]) -> None:
        """Only these instances are listed. Those that were not the last time either are gone:
        forget them, connections and host keys alike."""
        absent = self._known.keys() - set(ids)
        for gone in absent & self._absent:
            for line in self._known.pop(gone).open:
                line.close()
        self._absent = absent & self._known.keys()

    async def close(self) -> None:
        """End all connections, and with them what runs there for us."""
        lines = [line for known in self._known.values() for line in known.open]
        self._known.clear()
        for line in lines:
            line.close()
            await line.connection.wait_closed()

    async def _take(self, ref: InstanceRef, container: str | None) -> Line:
        lines = self._known.setdefault(ref.id, _Lines())
        async with lines.dialling:
            lines.open = [line for line in lines.open if line.is_open]
            if lines.open and container not in (None, lines.container):
                raise InstanceNotFoundError(f'instance {ref.id} has no container "{container}"')
            for line in lines.open:
                if container is None or line.sessions < line.most_sessions:
                    break
            else:
                line = await self._dial(ref, container, lines)
                lines.open.append(line)
        if line.idle is not None:
            line.idle.cancel()
            line.idle = None
        return line

    async def _dial(self, ref: InstanceRef, container: str | None, lines: _Lines) -> Line:
        pod = await self._locate(ref.id)
        if pod is None:
            self._known.pop(ref.id, None)
            raise InstanceNotFoundError(f"RunPod has no instance {ref.id}")
        target = target_of(pod, container)
        key = await self._keys.private()
        try:
            async with self._dials, asyncio.timeout(self._config.connect_seconds):
                connection = await _connect(target, key, lambda: _Guard(lines))
        except (OSError, TimeoutError, asyncssh.Error) as error:
            raise _refusal(ref, target, error, lines) from error
        mark = read_mark(pod)
        lines.container = mark.container if mark is not None else None
        return Line(connection)

    def _rest(self, line: Line) -> None:
        """Close a connection that nobody has used for a while."""
        if line.sessions or line.tunnels or not line.is_open:
            return
        loop = asyncio.get_running_loop()
        line.idle = loop.call_later(self._config.idle_seconds, line.close)


class _Guard(asyncssh.SSHClient):
    """Believes the first host key of an instance, and then that one alone."""

    def __init__(self, lines: _Lines) -> None:
        self._lines = lines
        self._shown: str | None = None

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        self._shown = key.get_fingerprint()
        return self._lines.pinned in (None, self._shown)

    def auth_completed(self) -> None:
        # Only now has the server proved that the key is its own, and let us in.
        self._lines.pinned = self._shown


async def _connect(
    target: SshTarget, key: asyncssh.SSHKey, guard: Callable[[], asyncssh.SSHClient]
) -> asyncssh.SSHClientConnection:
    """With our key alone: no agent, no password, nothing out of a person's own settings."""
    return await asyncssh.connect(
        target.host,
        target.port,
        username=target.username,
        client_keys=[key],
        known_hosts=([], [], []),
        client_factory=guard,
        config=None,
        agent_path=None,
        preferred_auth="publickey",
        keepalive_interval=KEEPALIVE_SECONDS,
        compression_algs=None,
        client_version="vk-provider",
    )


def _refusal(ref: InstanceRef, target: SshTarget, error: Exception, lines: _Lines) -> Exception:
    where = f"the SSH server of instance {ref.id} ({target})"
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return DeniedError(
            f"{where} shows another host key than when it was first met ({lines.pinned}): refused, "
            "since somebody may stand in between. A container that was started again has new "
            "keys; a new pod is trusted anew"
        )
    if isinstance(error, asyncssh.PermissionDenied):
        return NotSupportedError(
            f"{where} does not take the key of ssh.privateKey: its image does not read "
            "PUBLIC_KEY, or the key was another one when the pod was made"
        )
    if isinstance(error, TimeoutError | asyncssh.Error):
        return UnavailableError(
            f"{where} does not answer as one: {str(error) or 'no answer in time'}"
        )
    why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return UnavailableError(
        f"{where} does not answer ({why.lower()}): the image has none, its start script was "
        "replaced by the pod's command, or it is not up yet"
    )


@contextmanager
def spoken(ref: InstanceRef) -> Iterator[None]:
    """What breaks while we talk to an instance, as a fault of ours."""
    try:
        yield
    except asyncssh.ChannelOpenError as error:
        raise UnavailableError(f"instance {ref.id} refuses: {error.reason}") from error
    except (asyncssh.Error, OSError) as error:
        words = f"the connection to instance {ref.id} broke: {error}"
        raise UnavailableError(words) from error
