"""An SSH server for each simulated pod, so that exec, cp and port-forward can be rehearsed.

Whatever is asked for runs as a process of this machine, with the rights of whoever runs the
simulator: hence only with ``--allow-exec``. A pod's processes have its variables, and a folder of
their own as working directory, HOME and TMPDIR; nothing else is isolated. A simulated container has
no process, so its PID 1 is made up: ``/proc/1/`` in a command means a folder that says the same,
and so is its cgroup.
As with OpenSSH, a closed channel ends no command without a terminal.
Fed by ``pods_api`` and ``app`` (who lives); serves on loopback.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import asyncssh

from vk_provider_runpod.simulator.commands import Command
from vk_provider_runpod.simulator.model import SimulatedPod

HOST = "127.0.0.1"
MOST_SESSIONS = 10
"""On one connection: OpenSSH's default."""
_BUSY = 0.03
_MEMORY_BYTES = 512 << 20
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Shells:
    """The SSH servers of one simulator."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.most_sessions = MOST_SESSIONS
        self._now = now
        self._servers: dict[str, _Server] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def open(self, pod: SimulatedPod) -> None:
        """Give a new pod its server, or a port that nobody answers on if its image has none."""
        if "22/tcp" not in (pod.body.get("ports") or []):
            return
        listener = socket.create_server((HOST, 0))
        pod.ssh_port = listener.getsockname()[1]
        if pod.offers_ssh:
            self._servers[pod.id] = _Server(pod, listener, self._now, self.most_sessions)
        else:
            listener.close()

    def sweep(self) -> None:
        """End the servers of pods that are gone, and with them all that runs there."""
        for pod_id, server in list(self._servers.items()):
            if server.pod.deleted_at is not None or server.pod.ended is not None:
                del self._servers[pod_id]
                ending = asyncio.create_task(server.end())
                self._ending.add(ending)
                ending.add_done_callback(self._ending.discard)

    def connections(self, pod_id: str) -> int:
        """How many clients a pod's server has."""
        server = self._servers.get(pod_id)
        return 0 if server is None else len(server.connections)

    def folder(self, pod_id: str) -> Path:
        """Where a pod's commands run."""
        return self._servers[pod_id].root

    def cut(self, pod_id: str) -> None:
        """Drop a pod's connections, as when its container is started again."""
        for connection in self._servers[pod_id].connections:
            connection.abort()

    async def close(self) -> None:
        """End all of them, and leave nothing behind."""
        servers, self._servers = list(self._servers.values()), {}
        await asyncio.gather(*(server.end() for server in servers), *self._ending)


class _Server:
    """The server of one pod."""

    def __init__(
        self,
        pod: SimulatedPod,
        listener: socket.socket,
        now: Callable[[], float],
        most_sessions: int,
    ) -> None:
        self.pod = pod
        self.most_sessions = most_sessions
        self._now = now
        self._listener = listener
        self._listener.setblocking(False)
        self._folder = TemporaryDirectory(prefix="runpod-")
        self.root = Path(self._folder.name, "root")
        self._lay_out()
        self._keys: dict[float, asyncssh.SSHKey] = {}
        self.connections: set[asyncssh.SSHServerConnection] = set()
        self.tasks: set[asyncio.Task[Any]] = set()
        self.commands: set[Command] = set()
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    @property
    def env(self) -> dict[str, str]:
        """The variables of the container's own process."""
        pod, home = self.pod, str(self.root)
        return {
            "PATH": _PATH,
            "HOME": home,
            "TMPDIR": f"{home}/tmp",
            "RUNPOD_POD_ID": pod.id,
            "RUNPOD_DC_ID": pod.data_center,
            **pod.env,
        }

    def line(self, command: str) -> str:
        """A command with the made-up PID 1 in place of this machine's."""
        self._measure()
        for real in ("/proc/1/", "/sys/fs/cgroup/"):
            command = command.replace(real, f"{self._folder.name}{real}")
        return command

    def _measure(self) -> None:
        """As the API's list tells it: three hundredths of a processor, some memory."""
        cgroup = Path(self._folder.name, "sys", "fs", "cgroup")
        cgroup.mkdir(parents=True, exist_ok=True)
        busy = int((self.pod.uptime(self._now()) or 0) * 1_000_000 * _BUSY)
        (cgroup / "cpu.stat").write_text(f"usage_usec {busy}\nuser_usec {busy}\nsystem_usec 0\n")
        (cgroup / "memory.current").write_text(f"{_MEMORY_BYTES}\n")
        (cgroup / "memory.stat").write_text(f"anon 1\ninactive_file {_MEMORY_BYTES // 8}\n")

    async def end(self) -> None:
        """Stop listening, cut the connections, kill what was started; leave nothing behind."""
        asyncio.get_running_loop().remove_reader(self._listener)
        self._listener.close()
        for connection in self.connections:
            connection.abort()
        _kill_all(f"HOME={self.root}\0".encode())
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for command in self.commands:
            await command.process.wait()
        self._folder.cleanup()

    def _lay_out(self) -> None:
        (self.root / "tmp").mkdir(parents=True)
        first = Path(self._folder.name, "proc", "1")
        first.mkdir(parents=True)
        (first / "cwd").symlink_to(self.root)
        (first / "environ").write_text("".join(f"{k}={v}\0" for k, v in self.env.items()))

    def _accept(self) -> None:
        """A client has come: a callback of the loop, so that none is lost between two steps."""
        with suppress(OSError):
            accepted, _ = self._listener.accept()
            if self.pod.uptime(self._now()) is None:
                accepted.close()  # no container, no server
                return
            task = asyncio.create_task(self._serve(accepted))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _serve(self, accepted: socket.socket) -> None:
        # A container that is started again has another disk, and its image makes new host keys.
        start = self.pod.started_at
        key = self._keys.setdefault(start, asyncssh.generate_private_key("ssh-ed25519"))
        with suppress(asyncssh.Error, OSError):
            connection = await asyncssh.run_server(
                accepted,
                server_factory=lambda: _Guest(self),
                server_host_keys=[key],
                encoding=None,
                line_editor=False,
                compression_algs=None,
                config=None,
            )
            self.connections.add(connection)
            await connection.wait_closed()
            self.connections.discard(connection)


class _Guest(asyncssh.SSHServer):
    """One client that has connected."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._sessions = 0

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        env = self._server.pod.env
        lines = f"{env.get('PUBLIC_KEY', '')}\n{env.get('SSH_PUBLIC_KEY', '')}".splitlines()
        shown = key.export_public_key("openssh").split()[:2]
        return any(line.encode().split()[:2] == shown for line in lines)

    def session_requested(self) -> asyncssh.SSHServerProcess[bytes]:
        if self._sessions >= self._server.most_sessions:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "open failed"
            )
        self._sessions += 1
        return asyncssh.SSHServerProcess(self._run, None, 3, False)

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> bool:
        return True

    async def _run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        server, task = self._server, asyncio.current_task()
        assert task is not None
        server.tasks.add(task)
        task.add_done_callback(server.tasks.discard)
        try:
            line = server.line(process.command or "exec sh -i")
            command = await Command.start(line, server.env, server.root, process)
            server.commands.add(command)
            await command.serve(process)
            server.commands.discard(command)
        finally:
            self._sessions -= 1
            await process.wait_closed()


def _kill_all(mark: bytes) -> None:
    """Kill every process of this machine whose environment holds the mark."""
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with suppress(OSError):
                if mark in Path(f"/proc/{entry}/environ").read_bytes():
                    os.kill(int(entry), signal.SIGKILL)
